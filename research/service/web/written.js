// What a model writes from the sources, while it does, and then what its sources say to every sentence.

import { el, problemView, visible } from "./dom.js";

const SIGNS = {
  carried: ["✓", "carried by its source"],
  doubtful: ["?", "doubtful: read the source"],
  "not found": ["✗", "not found in its source"],
  uncited: ["✗", "cites nothing"],
};
const NO_CLAIM = ["a heading", "a list of sources"]; // reasons of sentences that claim nothing

export class WrittenAnswer {
  /** `model` is to write it, if it has a name. `cite` makes the link of a citation, `stop` ends the writing. */
  constructor(model, cite, stop) {
    this.cite = cite;
    this.text = "";
    this.body = el("p", { class: "written-text", dir: "auto" });
    const stopped = el(
      "button",
      { type: "button", class: "quiet small", on: { click: () => this.stop(stop) } },
      "Stop",
    );
    // There from the beginning, with room for a few lines: what stands below it is being read already.
    this.element = el(
      "section",
      { class: "written writing", hidden: !model, "aria-label": "Written answer" },
      el("p", { class: "soft written-head" }, el("span", {}, `${model} is writing from the sources …`), stopped),
      this.body,
    );
  }

  add(piece) {
    this.element.hidden = false;
    this.text += piece;
    this.body.replaceChildren(...this.cited(this.text));
  }

  stop(stop) {
    stop();
    this.element.replaceChildren(
      el("p", { class: "soft written-head" }, "Stopped; these sentences were not checked."),
      this.body,
    );
    this.body.append(" […]");
  }

  /** The answer's last word: the whole of it, checked. */
  end(answer) {
    const { written } = answer;
    const parts = [];
    if (!written) {
      this.element.hidden = true;
      return;
    }
    if (written.text.trim()) parts.push(...this.checked(answer));
    if (written.problem && written.code !== "not_asked") {
      parts.push(
        problemView({
          title: written.text
            ? `The answer is not all of it: ${written.problem}`
            : `${written.model || "The model"} wrote no answer: ${written.problem}`,
          hint: written.hint,
        }),
      );
    }
    for (const note of written.notes ?? []) parts.push(el("p", { class: "soft" }, note));
    this.element.hidden = !parts.length;
    this.element.classList.remove("writing");
    this.element.replaceChildren(...parts);
  }

  checked(answer) {
    const { written, checks } = answer;
    const sentences = checks.length ? checks : [{ text: written.text, verdict: "", reason: "" }];
    const open = sentences.filter(
      ({ verdict, reason }) =>
        verdict && (verdict !== "carried" || reason.startsWith("stands in")) && !NO_CLAIM.includes(reason),
    );
    const carried = sentences.filter(({ verdict }) => verdict === "carried").length;
    const claims = sentences.filter(({ reason }) => !NO_CLAIM.includes(reason)).length;
    return [
      el(
        "p",
        { class: "soft written-head" },
        `Written by ${written.model} from the sources; every sentence is checked.`,
        ` ${carried} of ${claims} carried.`,
      ),
      el(
        "p",
        { class: "written-text", dir: "auto" },
        sentences.map((sentence) => [this.sentence(sentence), " "]),
      ),
      open.length
        ? el(
            "ul",
            { class: "doubts" },
            open.map((sentence) =>
              el(
                "li",
                {},
                this.sign(sentence),
                el("span", { class: "serif" }, `“${shortened(sentence.text)}” `),
                this.cited(sentence.reason),
              ),
            ),
          )
        : null,
    ].filter(Boolean);
  }

  sentence(sentence) {
    const plain = !sentence.verdict || NO_CLAIM.includes(sentence.reason);
    return el(
      "span",
      { class: plain ? "" : `sentence ${sentence.verdict.replace(" ", "-")}` },
      this.cited(sentence.text),
      plain ? null : this.sign(sentence),
    );
  }

  sign({ verdict, reason }) {
    const [sign, words] = SIGNS[verdict] ?? ["?", verdict];
    return el(
      "span",
      { class: `sign ${verdict.replace(" ", "-")}`, title: reason || words },
      el("span", { "aria-hidden": "true" }, sign),
      el("span", { class: "hidden-text" }, `(${words})`),
    );
  }

  /** The text with its citations as links. */
  cited(text) {
    const found = [];
    let at = 0;
    for (const match of text.matchAll(/\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]/g)) {
      found.push(
        visible(text.slice(at, match.index)),
        ...match[1].split(/[,;]/).map((number) => this.cite(Number(number))),
      );
      at = match.index + match[0].length;
    }
    return [...found, visible(text.slice(at))];
  }
}

const shortened = (text) => (text.length > 90 ? `${text.slice(0, 88).trimEnd()} …` : text);
