// Where one is: the question and its filters in the address, the view and the opened page behind the #. So back and
// forward, reload and bookmarks work, and nothing else holds what is shown.

const LISTS = ["doc", "tag"];
const SINGLE = ["pages", "under", "since", "until"];
const ID = /^(?:file-)?[0-9a-f]{16}(?:-[0-9]{1,6})?$/;

/** What an address says. `key` is the same for the same question. */
export function placeOf(url) {
  const given = url.searchParams;
  const ask = {
    q: (given.get("q") ?? "").trim(),
    session: /^[\w.-]{1,100}$/.test(given.get("session") ?? "") ? given.get("session") : "",
    turn: number(given.get("turn")) ?? 0,
    sources: number(given.get("sources")),
    write: given.get("write") !== "no",
  };
  for (const name of LISTS)
    ask[name] = given
      .getAll(name)
      .map((each) => each.trim())
      .filter(Boolean);
  for (const name of SINGLE) ask[name] = (given.get(name) ?? "").trim();
  const behind = new URLSearchParams(url.hash.slice(1));
  const [, id, page] = /^([^/]+)\/([0-9]{1,8})$/.exec(behind.get("page") ?? "") ?? [];
  return {
    ask,
    key: ask.q ? JSON.stringify(ask) : "",
    view: behind.has("documents") ? "documents" : "ask",
    page: id && ID.test(id) && Number(page) > 0 ? { id, number: Number(page) } : null,
    source: Number(/^#source-([0-9]{1,4})$/.exec(url.hash)?.[1] ?? 0),
  };
}

function number(text) {
  const found = Number.parseInt(text ?? "", 10);
  return found > 0 && found <= 1000 ? found : null;
}

/** The part of an address before the #. */
export function searchFor(ask) {
  const given = new URLSearchParams();
  if (ask.q) given.set("q", ask.q);
  for (const name of LISTS) for (const each of ask[name]) given.append(name, each);
  for (const name of SINGLE) if (ask[name]) given.set(name, ask[name]);
  if (ask.sources) given.set("sources", ask.sources);
  if (!ask.write) given.set("write", "no");
  if (ask.session) given.set("session", ask.session);
  if (ask.session && ask.turn) given.set("turn", ask.turn);
  const text = given.toString();
  return text ? `/?${text}` : "/";
}

export function hashFor(view, page) {
  const parts = [view === "documents" ? "documents" : "", page ? `page=${page.id}/${page.number}` : ""].filter(Boolean);
  return parts.length ? `#${parts.join("&")}` : "";
}

/** The address of a page in the view that is shown. */
export function pageHash(id, number) {
  return hashFor(placeOf(new URL(location.href)).view, { id, number });
}

export const emptyAsk = () => ({
  q: "",
  session: "",
  turn: 0,
  sources: null,
  write: true,
  doc: [],
  tag: [],
  pages: "",
  under: "",
  since: "",
  until: "",
});

/** The body of a request for it. */
export function requestFor(ask) {
  const all = { documents: ask.doc, tags: ask.tag, pages: ask.pages, since: ask.since, until: ask.until };
  if (ask.under) all.under = [ask.under];
  const filters = Object.fromEntries(Object.entries(all).filter(([, value]) => value.length)); // an empty text is none
  const body = { query: ask.q, stream: true };
  if (Object.keys(filters).length) body.filters = filters;
  if (ask.sources) body.max_sources = ask.sources;
  if (!ask.write) body.write = false;
  if (ask.session) body.session = ask.session;
  if (ask.turn) body.turn = ask.turn;
  return body;
}
