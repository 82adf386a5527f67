"""Words that orders to a model are made of, in classes: a rule speaks of classes, never of words.

A class has the same meaning in every language, so that a rule found in one holds in the others. A word ending in `*`
stands for every word that begins so. Several words in one entry, joined by `_`, count as one.
"""

from __future__ import annotations

CLASSES: dict[str, str] = {
    # What is done to earlier orders.
    "override": """
        ignore ignoring disregard disregarding forget forgetting override overriding bypass bypassing overlook
        discard dismiss skip circumvent unlearn abandon nullify set_aside pay_no_attention throw_away throw_out
        stop_following stop_obeying not_follow never_follow no_longer_follow not_obey not_comply give_no_weight
        put_aside leave_aside take_no_notice ignoriere ignorieren ignoriert vergiss vergesst vergessen missachte
        missachten nicht_beachten oublie oubliez oublier neglige negligez ignorez ignorer ne_tiens_pas_compte
        ne_tenez_pas_compte ignora ignoren ignorar olvida olvide olvidate olvidad olviden haz_caso_omiso
        no_hagas_caso desestima desestime ignorem esqueca esquece desconsidere desconsidera ignorate ignori
        dimentica dimenticate dimentichi trascura negeer negeren vergeet zignoruj ignoruj zignorujcie ignorowac
        zapomnij zapomnijcie pomin игнорируй игнорируйте проигнорируй проигнорируйте игнорировать забудь забудьте
        忽略 无视 忘记 忘掉 忽視 無視 忘れ 무시 잊 drop_all erase wipe purge dump_your cancel stop_applying
        suspend not_listen not_adhere not_apply_the break_free cast_aside move_past tear_up scrap delete_your
        ne_suis_plus ne_suivez_plus ne_respectez_plus no_sigas no_siga não_siga não_sigas non_seguire volg_niet
        не_следуй suspendiere übergehe ignorierst vergisst missachtest ignores_tes
    """,
    "follow": """
        follow focus obey heed adhere befolge befolgen suivez suis sigue siga segui volg следуй следуйте siga_estas
    """,
    # The state earlier orders are in afterwards.
    "revoked": """
        void revoked superseded cancelled canceled lifted null obsolete suspended disabled removed replaced updated
        changed overridden expired deprecated rescinded invalid no_longer_apply no_longer_applies no_longer_valid
        not_apply not_valid aufgehoben ungültig annulées annulés anuladas revogadas revocate отменены 失效 取消 無効
        outdated joke fake mistaken turned_off switched_off deactivated waived relaxed over superseded_by lapsed
        bypassed unnecessary
    """,
    "earlier": """
        previous previously prior above earlier preceding foregoing before initial original existing former past
        aforementioned so_far until_now up_to_now given_so_far vorherig* bisherig* obig* vorangegangen* vorig*
        früher* vorstehend* bisher zuvor vorher ursprünglich* précédent* antérieur* ci_dessus plus_haut avant
        jusqu_ici anterior* previa* previo* antes precedente* prévia* prévio* acima precedenti sopra finora prima
        voorgaand* eerder* bovenstaand* poprzedni* wcześniejsz* powyższ* dotychczasow* предыдущ* прежн* вышеуказанн*
        прошл* ранее раньше 之前 以上 前面 先前 上述 此前 上面 以前 これまで 上記 이전 기존 앞서 지금까지 oben
        weiter_oben ci_avant arriba más_arriba hierboven wyżej выше
    """,
    "instruction": """
        instruction instructions direction directions prompt prompts guideline guidelines directive directives
        guidance programming guardrail guardrails safeguard safeguards anweisung* instruktion* vorgaben systemprompt
        consigne consignes instrucción instrucciones indicaciones instrução instruções istruzione istruzioni
        instructie instructies opdracht opdrachten instrukcj* poleceni* инструкци* указани* промпт* 指令 指示 提示词
        提示 命令 プロンプト 지시사항 지시 명령 지침 프롬프트
    """,
    "rule": """
        rule rules restriction restrictions constraint constraints limit limits limitation limitations filter
        filters policy policies training safety ethics censorship moderation regeln befehle einschränkung*
        beschränkung* restriction* restricción restricciones reglas limites límites restrições regras filtros
        restrizioni regole filtri beperkingen regels ograniczeń zasady ограничени* правил* команд* 限制 规则 規則
        制限 제한 규칙 sicherheitsregel* consignes_de_sécurité protocol protocols règle règles regla regola norme
        normas vorschriften
    """,
    "check": "check checks confirmation warning warnings verification disclaimers disclaimer",
    # Who is spoken to, and who must not hear.
    "you": """
        you your yours yourself du dein* dir dich ihr* euch tu tes te toi vous votre vos tú tus usted sus você seu
        sua seus suas vostro vostre le_tue tue je jouw jij twoje wasze ты твои тебе вам ваши вас 你 您 あなた 당신
        너는 you_re eres debes ton
    """,
    "model": """
        llm llms gpt gpts chatgpt claude gemini copilot chatbot chatbots openai_model language_model language_models
        large_language_model large_language_models ai_model ai_models ai_system ai_systems ai_assistant
        ai_assistants ai_agent ai_agents ai_reviewer ai_reviewers ai_tool ai_tools virtual_assistant
        virtual_assistants artificial_intelligence summarizer summarizers summariser summarisers automated_reader
        automated_readers automated_system automated_systems automated_reviewer automated_reviewers generative_model
        sprachmodell* ki_assistent ki_modell modèle_de_langage modele_de_langue modelo_de_lenguaje
        modelo_de_linguagem modello_linguistico inteligencia_artificial inteligência_artificial
        intelligence_artificielle intelligenza_artificiale taalmodel model_językowy языковая_модель нейросеть
        чат_бот 人工智能 语言模型 語言模型 大模型 言語モデル 人工知能 언어_모델 언어모델 인공지능 챗봇
        machine_reader machine_readers ai_language_model ai_chatbot ai_bot ai_program ai_summarizer neural_network
        text_generator generative_ai language_ai ai_engine assistant_model ai_reader ai_readers llm_agent llm_agents
        llm_assistant llm_model llm_models llm_system llm_systems llm_tool llm_tools llm_reviewer llm_reviewers
        llm_language_model llm_chatbot llm_assistants
    """,
    "assistant": """
        assistant assistants agent agents model models bot bots assistent* asistente modèle modelo modello
        assistente agente asystent ассистент помощник модель 助手 助理 模型 アシスタント モデル 어시스턴트 모델
    """,
    "user": """
        user users human humans whoever_asks person_asking person_you end_user end_users reader readers nutzer*
        benutzer* anwender utilisateur* usuario* usuário* utente utenti gebruiker* użytkownik* пользовател* 用户
        用戶 使用者 ユーザー 사용자
    """,
    "maker": """
        developer developers creator creators programmer programmers openai anthropic deepmind entwickler*
        développeur* desarrollador* desenvolvedor* sviluppator* разработчик* 开发者 開発者 개발자 engineer engineers
        built_you created_you made_you trained_you
    """,
    "authority": "administrator administrators admin admins root sudo superuser moderator supervisor it_department",
    "system": "system système sistema systeem systemowy системный 系统 系統 システム 시스템 systemnachricht",
    "secret": """
        hidden secret confidential internal private geheim* versteckt* cachées secretas ocultas segrete tajne скрыт*
        секретн* 隐藏 秘密 隠 비밀
    """,
    # What is asked for.
    "reveal": """
        reveal revealing print repeat output leak leaking disclose disclosing show display list expose dump recite
        translate summarize summarise copy echo share quote spell zeige zeig verrate offenbare gib wiederhole
        affiche affichez révèle révélez montre montrez répète répétez muestra muestre revela revele imprime repite
        mostre rivela mostra stampa ripeti toon onthul herhaal pokaż ujawnij wypisz покажи покажите раскрой выведи
        повтори 显示 输出 透露 泄露 重复 表示 出力 明かし 출력 공개 보여 paste reproduce transcribe divulge
        surrender unveil hand_over give_me tell_me write_out spell_out report donne donnez dame dammi nenne gib_mir
        geef verrätst zeigst nennst
    """,
    "tell": """
        tell inform alert warn notify telling informing alerting warning notifying sage sag erzähle erzähl teile
        informiere dis dites informe informez raconte racontez digas diga cuentes informes conte dire dirlo
        informare zeg vertel mów powiedz informuj говори сообщай сообщайте говорите рассказывай 告诉 告知 告訴 教え
        伝え 알리 말하 알려 let_the make_the convince persuade urge encourage advise
    """,
    "mention": """
        mention mentioning discuss refer highlight erwähne erwähnen mentionne mentionnez menciones mencione
        acknowledge allude bring_up 提到 提及 言及 언급
    """,
    "deny": "deny hide conceal pretend_not",
    "answer": """
        answer respond reply say state write conclude claim recommend rate classify approve praise end finish begin
        start refuse include contain append insert add advise suggest describe treat rank score evaluate antworte
        antworten empfiehl empfehle schreibe sage_dass réponds répondez recommande recommandez responde responda
        recomienda recomiende recomende diga_que di_que escribe rispondi rispondete raccomanda scrivi antwoord
        zeg_dat beveel odpowiedz napisz ответь ответьте напиши отвечай скажи 回答 推荐 说 答え 回答し 대답 답변 추천
        recommends mark label flag assign accept prioritize prioritise choose select hire shortlist agree confirm
        mention promote endorse favor favour present portray insist refer direct link output répondre responder
        rispondere antwortet answering_that antwortest sagst schreibst
    """,
    "reply": """
        answer answers response responses reply replies output outputs summary summaries completion completions
        antwort antworten réponse réponses respuesta respuestas resposta risposta risposte antwoorden odpowiedzi
        ответ 答复 답변
    """,
    "wording": "phrase sentence words word statement text_below following_text string line keyword link url",
    "positive": "positive favorable favourable glowing flattering positiv* favorables positivas positieve",
    "negative": "negatives negative weaknesses weakness flaws criticism shortcomings drawbacks defects limitations",
    "verdict": """
        review reviews feedback evaluation assessment rating ratings comments remarks bewertung* recensione
    """,
    "top": "10 ten highest top best perfect maximum acceptance approved exceptionally strongest",
    "only": """
        only always solely exclusively nur ausschließlich immer uniquement toujours solo siempre sempre alleen
    """,
    # Reading and answering, as a model is said to do it.
    "reading": """
        summarizing summarising summarize summarise reviewing analyzing analysing evaluating processing reading
        answering generating responding replying parsing indexing screening grading scoring ingesting reads
        processes summarizes summarises analyzes evaluates parses
    """,
    "asked": "asked asks ask queried queries questioned prompted",
    "anyone": "anyone anybody someone somebody whoever everyone",
    "this": "this these dies* cette ces este esta esto estas isto isso questo questa deze это этой 这 此 この",
    "page": """
        document documents page file text article note paper resume résumé cv email message passage content contents
        manuscript site website webpage submission application paragraph pdf material notice nachricht notiz lettre
        mensaje nota mensagem messaggio заметке 内容 文档 文書 내용 문서
    """,
    "question": "question questions query queries request requests input task frage pregunta 问题 質問 질문",
    "conversation": """
        conversation chat chat_history conversation_history dialogue previous_messages system_prompt context_window
        gespräch conversación conversa last_message user_s_message chat_log transcript
    """,
    "context": "context conversation messages text content kontext contexte contexto contesto",
    "private": """
        api_key api_keys credentials passwords password secrets tokens personal_data email_addresses sensitive_data
        private_data confidential_data user_data
    """,
    "tool": "tool tools function functions api browser shell terminal plugin plugins connector webhook endpoint",
    "act": """
        call invoke run execute use open fetch browse visit post send forward upload delete transfer email submit
        exfiltrate download purchase navigate click collect gather encode embed render attach put place
    """,
    "mode": """
        developer_mode dan_mode god_mode jailbreak_mode debug_mode maintenance_mode admin_mode unrestricted_mode
        root_mode diagnostic_mode dev_mode test_mode dan_persona do_anything_now
    """,
    "goal": """
        task tasks goal goals objective objectives mission job purpose aufgabe tâche tarea tarefa compito 任务
        タスク 임무
    """,
    "new": "new neue neuen nouvelle nueva nova nuova nieuwe nowe новые 新 新的 새로운 real actual true",
    # A change of who answers.
    "pretend": """
        pretend start_being start_acting begin_acting act behave roleplay role_play simulate imagine impersonate
        become emulate play_the_role assume_the_role take_on_the_role adopt_the_persona play_the_part take_the_role
        tue_so simuliere agis agissez simule simula actúa finge aja fingi comportati finja gedraag udawaj притворись
        представь 扮演 假装 演じ 행동 switch_to turn_into transform_into play adopt embody speak_as respond_as
        answer_as reply_as assume
    """,
    "now": """
        now henceforth from_now_on from_here_on as_of_now no_longer from_this_point starting_now going_forward jetzt
        nun ab_sofort ab_jetzt nicht_mehr désormais maintenant dorénavant ahora a_partir_de_ahora desde_ahora agora
        a_partir_de_agora adesso d_ora_in_poi da_ora voortaan nu vanaf_nu teraz od_teraz теперь отныне 现在
        从现在开始 今から 이제 지금부터
    """,
    "are": "are be is am has_been have_been bist êtes tu_es eres é siete bent jesteś 是 です 입니다",
    "unbound": """
        unrestricted unfiltered uncensored jailbroken jailbreak unlimited unbound amoral evil unethical
        without_restriction without_restrictions without_limits without_filters without_limitations
        without_any_restrictions without_rules without_refusing no_restrictions no_limits no_filters
        no_rules no_limitations never_refuse never_refuses never_say_no never_says_no say_no uneingeschränkt*
        ohne_einschränkungen ohne_regeln sans_restriction sans_restrictions sans_aucune_restriction sans_filtre
        sin_restricciones sin_filtros sem_filtros sem_restrições senza_restrizioni senza_filtri zonder_beperkingen
        bez_ograniczeń без_ограничений 没有任何限制 没有限制 不受限制 無制限 制限のない 제한_없는 제한없는 free_from
        freed liberated without_filter without_censorship without_safety no_content no_ethical no_guidelines
        no_policy no_policies sin_reglas sin_límites sem_regras sans_règles senza_regole ohne_filter
    """,
    "every": """
        all any every each whatever everything anything entire alle alles jede* toutes tous tout toute todas todos
        todo toda tutte tutti tutto wszystkie все всё 所有 全部 一切 すべて 全て 모든 모두
    """,
    "told": """
        told given instructed received taught dijeron gesagt dit dites detto verteld сказали dicho recibido ricevute
    """,
    "verbatim": "verbatim word_for_word exact_text exact_words inside_a_code_block wörtlich mot_à_mot literalmente",
    # How orders are given, and to whom they are addressed.
    "must": """
        must should shall has_to have_to need_to needs_to is_required_to are_required_to is_to are_to ought
        is_instructed_to are_instructed_to are_obliged_to is_obliged_to will musst müssen sollst soll sollte doit
        devez dois debe debes deve deves devi dovete moet musisz должен должна должны 必须 應該 应该 해야
    """,
    "allow": """
        may_now can_now authorise authorize allow permit order command instruct unlock free_to are_allowed_to orders
        commands instructs
    """,
    "address": """
        attention note message notice dear hello hey hi memo reminder achtung cher urgent important update command
        system_notice admin_notice
    """,
    "if": "if when whenever while once wenn falls lorsque quand cuando quando jeśli если 如果 もし 만약",
    "without": "without ohne sans sin sem senza zonder bez без",
    "silent": "silently secretly quietly covertly discreetly invisibly unnoticed undetected without_notice",
    "end": "end ende fin",
    "playing": "let_s_play play_a_game game hypothetical",
    # What turns an order into talk about orders.
    "not": """
        not never no nicht nichts kein keine niemals ne pas jamais rien nunca nada não non niet nie не нельзя 不
        不要 别 請勿 请勿 勿 ないで しない 않 마세요 말고 안 지_마
    """,
    "may": """
        may can could might would did does do_they often sometimes to_have they he she it we who which users_who
        models that usually rarely
    """,
    "to": "to zu",
    "report": """
        ask asked asks asking tell tells told telling instructs instructed instruct tricks tricked trick convince
        convinces causes cause makes make get gets tries try trying attempts attempt request requests persuade
        persuades order ordered orders says said saying reads wrote written
    """,
    "described": """
        attack attacks attacker attackers adversary adversarial injection injections jailbreaks malicious phishing
        vulnerability vulnerabilities researchers participants respondents experiment experiments study studies
        example examples e.g such_as for_instance technique techniques red_team red_teaming exploit exploits hacker
        hackers scam scams scammers social_engineering threat threats mitigations mitigation
    """,
    "where": """
        section chapter step steps figure table clause annex appendix manual letter invoice version terms paragraph
        page_no article_no exhibit schedule form line
    """,
    "please": """
        please kindly and then also just instead important urgent immediately first but so stop ok okay sure finally
        next bitte und dann puis luego poi и 请 請 并 그리고 simply strictly 并且
    """,
    # Small words that rules name.
    "system prompt": """
        system_prompt system_prompts system_message system_messages system_instructions system_instruction
        systemprompt developer_message initial_prompt original_prompt base_prompt invite_système prompt_de_sistema
        prompt_di_sistema prompt_do_sistema prompt_del_sistema системный_промпт 系统提示词 系统提示
        システムプロンプト 시스템_프롬프트 prompt_système prompt_sistema prompt_du_système
    """,
    "do": "do",
    "disable": "disable deactivate remove lift turn_off switch_off unlock",
    "safety": "safety security content ethical",
    "person": """
        user users operator operators employee employees staff participant participants customer customers driver
        drivers student students patient patients
    """,
    "comply all": "answers_every answer_every answers_any answer_any never_refuse never_refuses without_refusing",
    "to model": "to for für aux para per voor",
    "greeting": "dear hello hey hi attention achtung liebe lieber cher estimado caro",
    "article": "a an the ein eine un une una um uma een",
    "other": "other others another else any_other",
    "nothing": "nothing_else absolutely_nothing",
    "instead": "instead stattdessen",
    "starting": "starting beginning start begin starts begins started",
    "access": "have_access had_access has_access",
    "want": "want need require insist would_like",
    "not after": "nicht nichts nada nulla niets nic ничего",
    "not final": "ないで しない 않 마세요 말고 마십시오",
    "send": "send post forward upload email transmit exfiltrate submit leak",
    "approved": "approved authorised authorized granted permits permitted confirmed allows",
    "henceforth": """
        henceforth from_now_on from_here_on from_this_point from_this_moment as_of_now starting_now going_forward
        for_the_rest ab_sofort ab_jetzt désormais dorénavant à_partir_de_maintenant a_partir_de_ahora desde_ahora
        a_partir_de_agora d_ora_in_poi da_ora voortaan vanaf_nu od_teraz отныне 从现在开始 今から 지금부터
        for_the_remainder until_further_notice
    """,
    "stop being": "stop_being stop_acting cease_being no_longer_act no_longer_be quit_being",
    "supersedes": """
        supersedes overrides replaces cancels voids supersede replace ersetzt remplace reemplaza substitui
    """,
    "rely": "trust rely use cite believe consult quote vertraue",
    "source": "source sources documents pages results passages snippets references",
    "read": """
        processed read parsed analyzed analysed summarized summarised reviewed evaluated ingested indexed screened
        scanned interpreted
    """,
    "by": "by von par por da door przez",
    "omit": "omit omitting exclude excluding leave_out leaving_out avoid hide suppress skip",
    "replies": "responses outputs replies summaries completions generations",
    "precedence": "precedence priority_over",
    "no longer": "no_longer nicht_mehr nie_już больше_не 不再",
    "bound": "bound limited restricted constrained required obliged",
    "role": "assume_the_role take_on_the_role adopt_the_persona play_the_role play_the_part adopt_the_role",
    "comply": "comply obey",
    "prompt": "prompt prompts system_prompt systemprompt промпт* 提示词 プロンプト 프롬프트 invite_système",
    "everything": """
        everything all_text all_the_text all_words all_content all_of_the_text entire_text alles tout todo tutto
        wszystko всё
    """,
    "the": "the",
    "of": "of",
    "in": "on in at of under auf en",
    "that": "that dass que che dat что",
    "with": "with mit avec con com met",
    "as": "as als",
    "before": "before prior_to",
    "from": "from von de",
    "address word": "url link address server endpoint webhook image",
    "machine": """
        machine machines algorithm algorithms robot robots parser crawler automated automatic automatically software
        computer llm ai
    """,
    "know": """
        know learn notice find_out see hear realize realise aware suspect discover erfahren savoir saber sapere
    """,
    "favor": """
        best first top highest leader recommended winner excellent outstanding qualified safe trusted premium
        preferred positive accept approved paid perfect 10 leading superior
    """,
    "persona": "persona character role identity personality alter_ego",
    "make sure": "make_sure ensure be_sure be_certain guarantee remember_to",
    "output": "output outputs summary summaries response responses completion final_answer generated_text",
    "let": "let allow",
    "enter": "switch enter activate enable unlock engage",
    "made you": "built_you created_you programmed_you trained_you designed_you developed_you",
    "memory": "memory memories context_window",
    "do what": "do_what_this do_what_it do_as_this do_exactly_what follow_this obey_this",
    "regardless": "regardless no_matter irrespective",
    "whenever": "every_time each_time whenever",
    "informed": "informed told notified alerted warned aware",
    "i am": "i_am i_m this_is",
    "if you are": """
        si_tu_es si_vous_êtes si_eres se_sei se_você_é wenn_du wenn_sie falls_du falls_sie als_je als_u если_ты
        если_вы
    """,
    "order": "order orders command commands",
}
