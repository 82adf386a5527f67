"""What is said to a language model and seldom to a person, in a few languages.

Each entry has the words that gate it, one of which must stand in the text before the pattern is tried, and the pattern,
for text in small letters with single blanks.
"""

from __future__ import annotations

PHRASES: tuple[tuple[tuple[str, ...], str], ...] = (
    # English
    (
        ("instruction", "prompt", "guideline", "directive"),
        r"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|override|bypass)\b(?: (?:all|any|every|each|the|your|"
        r"of|these|those|and|or|other|existing))* (?:previous|prior|above|earlier|preceding|foregoing|initial|"
        r"original|system|safety)(?: (?:previous|prior|above|and|or|system|safety|given|user|developer))* "
        r"(?:instructions?|prompts?|guidelines?|directives?|rules|messages?)\b",
    ),
    (
        ("instruction", "prompt"),
        r"\b(?:ignore|disregard|forget) (?:all(?: of)? )?your (?:\w+ )?(?:instructions|prompt|guidelines|"
        r"rules|training)\b",
    ),
    (
        ("prompt", "instruction"),
        r"\b(?:reveal|print|repeat|output|leak|disclose|show)(?: me)? (?:your|the) (?:system|hidden|initial|"
        r"secret) (?:prompt|instructions|message)\b",
    ),
    (
        ("new instruction", "new system", "system override"),
        r"\b(?:new (?:system )?(?:instructions?|prompt)|system override) ?:",
    ),
    (
        ("you are now", "from now on"),
        r"\b(?:you are now|from now on,? you (?:are|will be|act as|must act as))(?: in)? (?:an? |the |no "
        r"longer )?(?:\w+ ){0,3}(?:ai|a\.i\.|llm|assistant|chatbot|language model|dan|(?:developer|god|"
        r"jailbreak|unrestricted) mode|unrestricted|jailbroken)\b",
    ),
    (
        ("mode ",),
        r"\b(?:developer|dan|god|jailbreak) mode (?:is )?(?:enabled|activated|on)\b",
    ),
    (
        ("the user", "this user", "user about", "users about"),
        r"\b(?:do not|don['’]t|never|without) (?:tell|inform|alert|warn|notify|telling|informing|alerting|"
        r"warning|notifying) (?:the|this|your) (?:human )?users?\b|\b(?:do not|don['’]t|never) (?:mention|"
        r"reveal|disclose) (?:this|these|it|any of this)(?: \w+){0,3} to (?:the|this|your) (?:human )?user\b",
    ),
    (
        ("if you are a", "if you're a", "as an ai", "are you an ai"),
        r"\bif you(?: are|['’]re) (?:an? )?(?:ai|a\.i\.|llm|large language model|language model|ai assistant|"
        r"ai model|ai agent|chatbot|gpt)\b",
    ),
    (
        (" ai", " llm", "language model", "chatgpt", "assistant"),
        r"\b(?:attention|note to|message to|message for|instructions? to|instructions? for|dear|hello|hey),? "
        r"(?:all |any |the |every )*(?:ais?|ai (?:assistants?|models?|agents?|systems?|reviewers?)|llms?|"
        r"(?:large )?language models?|chatgpt|chatbots?)\b ?[:,!.–—-]",
    ),
    (
        ("positive review",),
        r"\bgive (?:only )?(?:an? )?positive reviews?(?: only)?\b",
    ),
    # German
    (
        ("anweisung", "instruktion", "prompt"),
        r"\b(?:ignorier\w*|missacht\w*|vergiss|vergessen sie) (?:\w+ ){0,3}(?:vorherig|bisherig|obig|"
        r"vorangegangen|vorig|früher|vorstehend)\w* (?:\w+ )?(?:anweisung|instruktion|prompt|befehl|regel)\w*",
    ),
    (
        ("du bist jetzt", "du bist nun", "du bist ab sofort"),
        r"\bdu bist (?:jetzt|nun|ab sofort) (?:ein|eine|kein|keine) (?:\w+ ){0,3}(?:ki|assistent\w*|"
        r"sprachmodell|chatbot)\b",
    ),
    (
        ("nutzer",),
        r"\b(?:sage?|verrate?|erzähle?|teile?) (?:es |das |dies |davon )?(?:dem|der) (?:be)?nutzer(?:in)? "
        r"(?:nicht|nichts)\b",
    ),
    # French
    (
        ("instruction", "consigne"),
        r"\b(?:ignore[zrs]?|oublie[zrs]?|néglige[zrs]?) (?:toutes? )?(?:les |tes |vos |ces )?(?:instructions|"
        r"consignes) (?:précédentes|antérieures|ci-dessus|du système|données)",
    ),
    (
        ("maintenant", "désormais"),
        r"\b(?:tu es|vous êtes) (?:maintenant|désormais) une? (?:\w+ ){0,3}(?:ia|assistant|modèle|chatbot)\b",
    ),
    (
        ("utilisateur",),
        r"\bne (?:le |la |les )?(?:dis|dites|révèle[zs]?|informe[zs]?|mentionne[zs]?)(?: rien| pas| jamais)+ "
        r"(?:à )?l['’]utilisateur",
    ),
    # Spanish, Portuguese, Italian
    (
        ("instrucciones", "instruções", "istruzioni"),
        r"\b(?:ignor[ae]|olvida|olvide|esqueça|desconsidere|dimentica|ignorate)(?: todas| tutte)?(?: las| tus|"
        r" sus| as| suas| le| tue| tutte)* (?:instrucciones|instruções|istruzioni) (?:anteriores|previas|"
        r"precedentes|prévias|precedenti|sopra)",
    ),
    (
        ("usuario", "usuário", "utente"),
        r"\b(?:no (?:le |se lo )?(?:digas?|informes?|cuentes?|menciones?)|não (?:diga|conte|informe|mencione)|"
        r"non (?:dire|dirlo|informare))(?: nada| nulla| isso| esto)? (?:al|ao|o|all['’]) ?(?:usuario|usuário|"
        r"utente)\b",
    ),
    # Dutch, Polish, Russian
    (
        ("instructies",),
        r"\bnegeer (?:alle )?(?:voorgaande|vorige|eerdere|bovenstaande) instructies\b",
    ),
    (
        ("polecenia", "instrukcje"),
        r"\b(?:zignoruj|ignoruj|zapomnij)(?: wszystkie)? (?:poprzednie|wcześniejsze|powyższe) (?:polecenia|"
        r"instrukcje)",
    ),
    (
        ("инструкци", "указани", "команд"),
        r"\b(?:игнорируй|проигнорируй|забудь)(?:те)?(?: все)? (?:предыдущие|прежние|вышеуказанные|прошлые) "
        r"(?:инструкции|указания|команды)",
    ),
    (
        ("пользователю",),
        r"\bне (?:говори|сообщай|рассказывай)(?:те)?(?: \w+)? пользователю",
    ),
    # Chinese, Japanese, Korean
    (
        ("忽略", "无视", "忘记", "無視"),
        r"(?:忽略|无视|忘记|無視)(?:掉)?(?:之前|以上|前面|先前|上述|此前|所有)的?(?:所有|全部|一切)"
        r"?的?(?:指令|指示|说明|提示词?|命令|規則|规则)",
    ),
    (
        ("告诉用户", "告訴使用者"),
        r"(?:不要|别|請勿|请勿)(?:告诉用户|告訴使用者)",
    ),
    (
        ("無視", "忘れ"),
        r"(?:以前|これまで|前|上記|先)の(?:すべての|全ての)?(?:指示|命令|プロンプト)を(?:すべて|全て)?(?:無視|"
        r"忘れ)",
    ),
    (
        ("무시", "잊"),
        r"(?:이전|위|앞|기존)(?:의)? ?(?:모든 ?)?(?:지시|명령|지침)(?:사항)?(?:을|를)? ?(?:모두 )?(?:무시|잊)",
    ),
)
