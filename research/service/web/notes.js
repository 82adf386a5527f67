// What a reader has to know beside an answer: what was cut, and what could not be seen.

import { counted } from "./dom.js";

/** In plain words, each with its kind: "" or "warning". */
export function notesOn(answer) {
  return [...onBudget(answer), ...onSearch(answer), ...onCoverage(answer.coverage ?? {})];
}

function onBudget({ sources, dropped, truncated, max_tokens: most }) {
  const cut = sources.filter((source) => source.cut && truncated);
  const budget = counted(most, "token");
  return [
    ...(cut.length ? [["", `The text of ${named(cut)} is shortened to fit ${budget}.`]] : []),
    ...(dropped?.length ? [["", `${counted(dropped.length, "more page")} did not fit into ${budget}.`]] : []),
  ];
}

function onSearch({ sources, answered_by: by, searched, query, rewrites = [] }) {
  const leans = rewrites.some(({ name }) => name === "follow-up");
  return [
    ...(by === "documents" ? [["", `Answered by ${counted(sources.length, "document")}, one page each.`]] : []),
    ...(searched && searched !== query ? [["", `${leans ? "It goes on from the question before, so it was searched for" : "Searched for"}: ${searched}`]] : []),
  ];
}

function onCoverage({ legs = [], notes = [], pages = 0, pages_without_vectors: words, pages_without_visual: unseen }) {
  const failed = legs.filter((leg) => leg.status === "failed");
  const all = counted(pages, "page");
  return [
    ...failed.map(({ name, reason }) => `The ${name} search failed (${reason}); the answer rests on the others.`),
    ...notes.map(sentence),
    ...(words ? [`${words} of ${all} are searched by their words only, until they are embedded.`] : []),
    ...(unseen ? [`${unseen} of ${all} have not been seen by the visual model yet.`] : []),
  ].map((note) => ["warning", note]);
}

const named = (sources) =>
  `${sources.length === 1 ? "source" : "sources"} ${sources.map(({ citation }) => citation).join(", ")}`;

const sentence = (words) => `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? "" : "."}`;
