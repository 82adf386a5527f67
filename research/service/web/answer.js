// An answer: how sure it is, the quotes, what a model wrote, what is to be noted, and the sources.

import { Problem, events, getJson } from "./api.js";
import { byId, copy, counted, el, pageName, problemView, say } from "./dom.js";
import { notesOn } from "./notes.js";
import { pageHash, requestFor } from "./place.js";
import { sourceCard } from "./source.js";
import { blocksOf } from "./text.js";
import { WrittenAnswer } from "./written.js";

const LEVELS = {
  high: "The answer is very likely on these pages",
  medium: "The answer is probably on these pages",
  low: "The answer is possibly on these pages",
  none: "Nothing seems to answer this",
};

export class AnswerView {
  /** `onFound` gets the answer and the place that asked it. */
  constructor(root, onFound) {
    this.root = root;
    this.onFound = onFound;
    this.asked = ""; // the key of what is shown
    this.model = ""; // that writes answers, if there is one
    this.sources = [];
    this.running = null;
  }

  clear() {
    this.running?.abort();
    this.asked = "";
    this.sources = [];
    this.root.classList.remove("stale");
    this.root.replaceChildren();
  }

  /** Ask, and show what comes. The same question is not asked again. */
  async show(place, { again = false } = {}) {
    if (this.asked === place.key && !again) return;
    this.running?.abort();
    this.asked = place.key;
    const running = new AbortController();
    this.running = running;
    this.waiting();
    try {
      for await (const { name, data } of events("/api/research/ask", {
        method: "POST",
        body: requestFor(place.ask),
        signal: running.signal,
      })) {
        if (running.signal.aborted) return;
        if (name === "context") await this.found(data, place, running);
        else if (name === "piece") this.written?.add(data.text);
        else if (name === "answer") this.written?.end(data);
        else if (name === "problem") throw new Problem(data);
      }
    } catch (error) {
      if (error.name === "AbortError" || running.signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      this.failed(error, place);
    } finally {
      if (!running.signal.aborted) this.root.setAttribute("aria-busy", "false");
    }
  }

  waiting() {
    this.root.setAttribute("aria-busy", "true");
    this.sources = [];
    say("Searching");
    // What was shown stays, pale, until there is something else: most answers come before an eye has moved.
    if (this.root.querySelector(".answer-head")) this.root.classList.add("stale");
    else {
      this.root.replaceChildren(
        el(
          "div",
          { class: "waiting", "aria-hidden": "true" },
          ...["w60", "w95", "w80"].map((width) => el("span", { class: `line ${width}` })),
        ),
      );
    }
  }

  failed(problem, place) {
    if (problem.status === 401) {
      // the form to sign in is shown, and the question is still in the address
      this.clear();
      return;
    }
    const view = problemView(problem, problem.status === 422 ? null : () => this.show(place, { again: true }));
    this.root.classList.remove("stale");
    if (this.sources.length) this.root.prepend(view);
    else this.root.replaceChildren(view);
  }

  async found(answer, place, running) {
    const marks = await marksOf(answer, running.signal);
    if (running.signal.aborted) return;
    this.sources = answer.sources;
    this.root.classList.remove("stale");
    const writes = place.ask.write && answer.sources.length && answer.confidence?.level !== "none";
    this.written = new WrittenAnswer(
      writes ? this.model : "",
      (number) => this.cite(number),
      () => this.running.abort(),
    );
    this.root.replaceChildren(
      this.head(answer),
      this.written.element,
      answer.confidence?.level !== "none" ? this.quotes(answer, marks) : "",
      this.notes(answer),
      this.sourcesOf(answer, marks),
    );
    for (const passage of this.root.querySelectorAll(".passage"))
      passage.classList.toggle("cut", passage.scrollHeight > passage.clientHeight + 4);
    say(summary(answer));
    this.onFound(answer, place);
    // Out of the box, so that the keys act and a phone's keyboard gives way; not while something new is being typed.
    if (document.activeElement === byId("q") && byId("q").value.trim() === answer.query)
      this.root.focus({ preventScroll: true });
  }

  head(answer) {
    const level = answer.confidence?.level ?? "none";
    const title = LEVELS[level] ?? LEVELS.none;
    const searched = counted(answer.coverage?.pages ?? 0, "page");
    const none = `${searched} searched${answer.sources.length ? "; these are the nearest." : "."}`;
    const took = answer.timings?.total ? ` · ${Math.max(1, Math.round(answer.timings.total * 1000))} ms` : "";
    const context = el("button", { type: "button", class: "quiet" }, "Copy as context");
    context.addEventListener("click", () => copy(answer.formatted_text, context));
    return el(
      "div",
      { class: "answer-head" },
      el(
        "div",
        {},
        el(
          "h2",
          {
            class: `level ${level}`,
            title: answer.confidence ? `${Math.round(answer.confidence.value * 100)} of 100` : null,
          },
          title,
        ),
        level === "none" ? el("p", { class: "soft" }, none) : "",
      ),
      answer.sources.length
        ? el(
            "div",
            { class: "answer-tools soft" },
            el("span", {}, `${counted(answer.sources.length, "source")} of ${searched}${took}`),
            el(
              "span",
              { title: "Numbered, with citations, for a model of your choice" },
              context,
              ` ${counted(answer.total_tokens, "token")}`,
            ),
          )
        : null,
    );
  }

  quotes(answer, marks) {
    if (!answer.quotes.length) return "";
    return el(
      "section",
      { class: "quotes", "aria-label": "Quotes" },
      answer.quotes.map((quote, number) => {
        const source = answer.sources[quote.citation - 1];
        const where = `${source.filename}, ${pageName(source.page, source.page_label)}`;
        const copied = el("button", { type: "button", class: "quiet small" }, "Copy");
        copied.addEventListener("click", () => copy(`“${quote.text.trim()}” (${where})`, copied));
        return el(
          "figure",
          {},
          el("blockquote", { dir: "auto" }, blocksOf(quote.text, { marks: marks.quotes[number] })),
          el(
            "figcaption",
            {},
            this.cite(quote.citation),
            el("a", { class: "where", href: pageHash(source.doc_id, source.page) }, where),
            copied,
          ),
        );
      }),
    );
  }

  /** The number of a source, which leads to its card. */
  cite(number) {
    const source = this.sources[number - 1];
    if (!source) return document.createTextNode(`[${number}]`);
    return el(
      "a",
      {
        class: "cite",
        href: `#source-${number}`,
        "aria-label": `Source ${number}: ${source.filename}, ${pageName(source.page, source.page_label)}`,
      },
      String(number),
    );
  }

  notes(answer) {
    const notes = notesOn(answer);
    if (!notes.length) return "";
    return el(
      "ul",
      { class: "notes", "aria-label": "Notes" },
      notes.map(([kind, words]) => el("li", { class: kind }, words)),
    );
  }

  sourcesOf(answer, marks) {
    if (!answer.sources.length) return "";
    return el(
      "section",
      { class: "sources", "aria-labelledby": "sources-title" },
      el("h2", { id: "sources-title" }, "Sources"),
      el(
        "ol",
        {},
        answer.sources.map((source, number) => el("li", {}, sourceCard(source, marks.passages[number]))),
      ),
    );
  }

  /** Go to a source's card, if it is there. */
  jump(number) {
    const card = document.getElementById(`source-${number}`);
    if (!card) return;
    card.scrollIntoView({ block: "start" });
    card.focus({ preventScroll: true });
  }
}

/** Where the question's words stand in quotes and passages, as full-text search compares them. */
async function marksOf(answer, signal) {
  const texts = [...answer.quotes, ...answer.sources.flatMap((source) => source.passages)].map(
    (each) => each.text ?? "",
  );
  let matches = [];
  try {
    if (texts.length)
      ({ matches } = await getJson("/api/matches", {
        method: "POST",
        body: { question: answer.query, texts },
        signal,
      }));
  } catch (error) {
    if (error.name === "AbortError") throw error; // else the answer is shown without marks
  }
  const rest = matches.slice(answer.quotes.length);
  return {
    quotes: matches.slice(0, answer.quotes.length),
    passages: answer.sources.map((source) => rest.splice(0, source.passages.length)),
  };
}

function summary(answer) {
  const level = answer.confidence?.level ?? "none";
  const quotes = level === "none" ? "" : `${counted(answer.quotes.length, "quote")}, `;
  return `${LEVELS[level]}. ${quotes}${counted(answer.sources.length, "source")}.`;
}
