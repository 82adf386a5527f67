"""How an answer's HTML page looks: on a desk, on a phone, in the dark and on paper."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--ink:#1c1d21;--soft:#5f636d;--paper:#fff;--ground:#f4f4f1;--line:#dcdcd6;--link:#1551a8;
--mark:#ffe58a;--box:#d62828;--good:#1d7a46;--fair:#8a6100;--poor:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e7e7e4;--soft:#a2a6b0;--paper:#1e2025;--ground:#141519;--line:#34373f;
--link:#8ab4f8;--mark:#6b5600;--box:#ff6b6b;--good:#6fd19a;--fair:#e5b94e;--poor:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,"Segoe UI","Noto Sans",sans-serif}
main{max-width:64rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .4rem;overflow-wrap:anywhere}
h2{font-size:1rem;margin:0;overflow-wrap:anywhere}
h2 span{font-weight:400;color:var(--soft)}
a{color:var(--link)}
p{margin:.35rem 0;overflow-wrap:anywhere}
.facts{color:var(--soft);display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:0 0 1rem}
.level{font-weight:600}
.level.high{color:var(--good)}.level.medium{color:var(--fair)}.level.low,.level.none{color:var(--poor)}
blockquote{margin:.6rem 0;padding:.7rem 1rem;background:var(--paper);border-left:4px solid var(--link);
border-radius:4px;font-size:1.1rem}
blockquote p{margin:.1rem 0}
.cite{font-size:.85rem;text-decoration:none;overflow-wrap:anywhere}
.none{font-weight:600;color:var(--poor);font-size:1.1rem}
.note{color:var(--poor);font-size:.9rem}
article{background:var(--paper);border:1px solid var(--line);border-radius:6px;padding:1rem;margin:1rem 0;
scroll-margin-top:.5rem}
article:target{outline:2px solid var(--link)}
.section{color:var(--soft);font-size:.9rem;margin:.1rem 0 .5rem}
.columns{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,24rem);gap:1.2rem;align-items:start}
.columns .text:only-child{grid-column:1/-1}
.passage{margin:0 0 .8rem;padding-left:.8rem;border-left:3px solid var(--line)}
.heading{font-weight:600}
.item{padding-left:1.1em;text-indent:-1.1em}
.item::before{content:"•";display:inline-block;width:1.1em;text-indent:0}
mark{background:var(--mark);color:inherit;padding:0 .1em;border-radius:2px}
.wide{overflow-x:auto;margin:.4rem 0}
table{border-collapse:collapse;font-size:.9rem}
td,th{border:1px solid var(--line);padding:.15rem .5rem;vertical-align:top;text-align:left}
.short{white-space:nowrap}
pre{overflow-x:auto;font-size:.85rem;background:var(--ground);padding:.5rem;border-radius:4px}
details{font-size:.9rem;color:var(--soft)}
summary{cursor:pointer}
figure{margin:0}
.sheet{display:block;position:relative;line-height:0;border:1px solid var(--line)}
.sheet img{width:100%;height:auto;display:block}
.box{position:absolute;border:2px solid var(--box);background:rgba(214,40,40,.14);border-radius:2px}
footer{color:var(--soft);font-size:.85rem;margin-top:2rem}
@media (max-width:46rem){.columns{grid-template-columns:minmax(0,1fr)}h1{font-size:1.35rem}}
@media print{body{background:#fff;color:#000;font-size:11pt}main{max-width:none;padding:0}details{display:none}
article,blockquote{border-color:#999;break-inside:avoid}figure{max-width:60%}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
""".strip()
