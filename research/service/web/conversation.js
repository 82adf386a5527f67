// A conversation: what was asked in it so far, each with how its answer begins, oldest first.

import { Problem, getJson } from "./api.js";
import { byId, el } from "./dom.js";
import { emptyAsk, searchFor } from "./place.js";

const SHORT = 200; // characters of an answer

/** A name that nobody else has; crypto.randomUUID is there over HTTPS alone. */
export function newSession() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `web-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

export class Conversation {
  /** `onGo` gets the address of a turn. */
  constructor(root, onGo) {
    this.root = root;
    this.onGo = onGo;
    this.addresses = new Map(); // of turns that this page has asked, with their filters
    this.shown = "";
  }

  clear() {
    this.shown = "";
    this.root.hidden = true;
  }

  /** All turns, this one marked, which is shown in full below. */
  async show({ name, turn }, address) {
    const shown = `${name}/${turn}`;
    this.addresses.set(shown, address);
    if (this.shown === shown) return;
    this.shown = shown;
    let turns = [];
    try {
      ({ turns } = await getJson(`/api/sessions/${encodeURIComponent(name)}`));
    } catch (error) {
      if (!(error instanceof Problem)) throw error; // removed since: the answer stands by itself
    }
    if (this.shown !== shown) return;
    this.root.hidden = false;
    const list = byId("turns");
    list.replaceChildren(...(turns.length > 1 ? turns.map((each) => this.turn(name, each, turn)) : []));
    const current = list.querySelector("[aria-current]");
    if (current) list.scrollTop = current.offsetTop - list.offsetTop;
  }

  turn(name, { turn, question, answer, sources }, current) {
    const plain = searchFor({ ...emptyAsk(), q: question, session: name, turn });
    const href = this.addresses.get(`${name}/${turn}`) ?? plain;
    const click = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.onGo(href);
    };
    const quoted = sources.find((source) => source.quotes.length);
    const said = answer || quoted?.quotes[0] || "Nothing was quoted.";
    const where = answer || !quoted ? "" : ` (${quoted.filename}, page ${quoted.page})`;
    return el(
      "li",
      {},
      el("a", { href, on: { click }, "aria-current": turn === current ? "true" : null }, question),
      el("p", { class: "soft", dir: "auto", title: said }, `${said.replace(/[\s|]+/g, " ").slice(0, SHORT)}${where}`),
    );
  }
}
