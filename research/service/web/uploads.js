// Adding documents: PDFs by a button or dropped anywhere, and how far each ingest is.

import { Problem, call, events, getJson, upload } from "./api.js";
import { byId, counted, el, icon, problemView } from "./dom.js";

const STAGES = {
  read: "Reading",
  render: "Drawing the pages",
  embed: "Learning the text",
  ocr: "Reading pictures",
  visual: "Looking at the pages",
  publish: "Making it searchable",
  wait: "Waiting for another ingest",
};
const ENDED = ["done", "failed", "interrupted", "cancelled"];
const RESULTS = { added: "added", replaced: "replaced", unchanged: "there already", failed: "failed", copy: "a copy" };
const AGAIN = 1500; // milliseconds until a stream that broke is taken up again

export class Uploads {
  /** `onAdded` hears that there may be new documents, `onShow` that the list is wanted. */
  constructor({ onAdded, onShow }) {
    this.root = byId("uploads");
    this.onAdded = onAdded;
    this.onShow = onShow;
    this.allowed = false;
    this.jobs = new Map();
    this.listed = el("ul", { class: "jobs" });
    this.dropped();
  }

  /** Called when it is known whether documents may be added here. */
  allow(allowed) {
    if (allowed === this.allowed && this.root.childElementCount) return;
    this.allowed = allowed;
    if (!allowed) {
      this.root.replaceChildren(el("p", { class: "soft add-note" }, "Documents are added with ", el("code", {}, "ctx ingest FOLDER"), ", or here if the server was started with ", el("code", {}, "--allow-ingest"), "."));
      return;
    }
    const choose = el("input", { type: "file", accept: "application/pdf,.pdf", multiple: true, class: "hidden-text", id: "choose-files", tabindex: "-1", "aria-hidden": "true" });
    choose.addEventListener("change", () => {
      this.send([...choose.files]);
      choose.value = "";
    });
    this.root.replaceChildren(
      el("div", { class: "add" }, icon("add"), el("p", {}, el("button", { type: "button", on: { click: () => choose.click() } }, "Add PDFs …"), choose, el("span", { class: "soft" }, " or drop them anywhere on this page"))),
      this.listed);
    this.takeUp();
  }

  /** Jobs that run already, of this page before it was loaded again or of another. */
  async takeUp() {
    try {
      const { jobs } = await getJson("/api/ingest");
      for (const job of jobs.reverse()) if (!ENDED.includes(job.state) && !this.jobs.has(job.id)) this.follow(job);
    } catch (error) {
      if (!(error instanceof Problem)) throw error; // none to be seen
    }
  }

  async send(files) {
    this.onShow();
    // One file that is no PDF would have all of them refused.
    const are = await Promise.all(files.map(isPdf));
    const others = files.filter((file, number) => !are[number]).map((file) => file.name);
    const pdfs = files.filter((file, number) => are[number]);
    if (others.length) {
      const refused = new JobRow(others);
      this.listed.prepend(refused.element);
      refused.fail({ title: others.length === 1 ? "This is no PDF, and was not added" : `${counted(others.length, "file")} are no PDFs, and were not added` });
    }
    if (!pdfs.length) return;
    const row = new JobRow(pdfs.map((file) => file.name));
    this.listed.prepend(row.element);
    try {
      row.tell("Sending", 0, 1);
      const answer = await upload(pdfs, (sent, total) => row.tell("Sending", sent, total));
      this.follow(answer.job ?? answer, row);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      row.fail(error);
    }
  }

  async follow(job, row = null) {
    const shown = row ?? new JobRow(job.files.length ? job.files.map((file) => file.name) : [job.folder]);
    if (!row) this.listed.prepend(shown.element);
    this.jobs.set(job.id, shown);
    shown.onCancel = () => call(job.url, { method: "DELETE" }).catch(() => {});
    let current = job;
    while (!ENDED.includes(current.state)) {
      shown.draw(current);
      try {
        for await (const { name, data } of events(job.events_url)) {
          if (name === "job" || name === "done") current = data;
          if (name === "progress") current = { ...current, state: data.state ?? "running", progress: data };
          shown.draw(current);
        }
        if (!ENDED.includes(current.state)) current = await getJson(job.url);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        if (error.status) {
          shown.fail(error);
          return;
        }
        shown.tell("The server does not answer; waiting for it", 0, 0);
        await new Promise((resolve) => { setTimeout(resolve, AGAIN); });
      }
    }
    shown.draw(current);
    this.onAdded();
  }

  /** Files dropped anywhere. */
  dropped() {
    const cover = byId("drop");
    let depth = 0; // of the elements that are dragged over
    const hasFiles = (event) => this.allowed && [...(event.dataTransfer?.types ?? [])].includes("Files");
    const change = (by) => {
      depth = Math.max(0, depth + by);
      cover.hidden = depth === 0;
    };
    addEventListener("dragenter", (event) => { if (hasFiles(event)) { event.preventDefault(); change(1); } });
    addEventListener("dragleave", (event) => { if (hasFiles(event)) change(-1); });
    addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
    addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      change(-depth);
      this.send([...event.dataTransfer.files]);
    });
  }
}

/** By how it begins, as readers of PDFs have it; names and types say what anybody likes. */
async function isPdf(file) {
  try {
    return (await file.slice(0, 1024).text()).includes("%PDF-");
  } catch {
    return false; // a folder, or a file that may not be read
  }
}

/** One ingest: its files, how far it is, and what became of it. */
class JobRow {
  constructor(names) {
    this.onCancel = null;
    this.bar = el("progress", { "aria-label": "Progress" });
    this.words = el("p", { class: "soft", role: "status" });
    this.cancelled = el("button", { type: "button", class: "quiet small", hidden: true, on: { click: () => this.onCancel?.() } }, "Cancel");
    this.rest = el("div", {});
    this.element = el("li", { class: "job" },
      el("div", { class: "job-line" }, el("strong", {}, names.length === 1 ? names[0] : `${names[0]} and ${counted(names.length - 1, "more file")}`), this.cancelled),
      this.bar, this.words, this.rest);
    this.said = "";
  }

  /** Read out only what is new: a number that counts up says nothing. */
  tell(words, done, total) {
    if (total) Object.assign(this.bar, { max: total, value: done });
    else this.bar.removeAttribute("value");
    if (words !== this.said) this.words.textContent = words;
    this.said = words;
  }

  draw(job) {
    const { stage, done, total, page, pages } = job.progress ?? {};
    this.cancelled.hidden = ENDED.includes(job.state);
    this.element.dataset.state = job.state;
    if (job.state === "queued") this.tell("Waiting for its turn", 0, 0);
    else if (job.state === "running") this.tell(STAGES[stage] ?? "Beginning", pages && total === 1 ? page : done, pages && total === 1 ? pages : total);
    else this.end(job);
  }

  end(job) {
    this.bar.hidden = true;
    if (job.state === "failed" && job.problem) {
      this.fail(job.problem);
      return;
    }
    const told = job.files.filter((file) => file.result);
    const failed = told.filter((file) => file.result === "failed");
    const words = { done: failed.length ? "Some could not be added" : "Added; it can be asked now", interrupted: "Interrupted", cancelled: "Cancelled", failed: "Failed" }[job.state];
    this.words.textContent = failed.length && failed.length === job.files.length ? "It could not be added" : words;
    this.rest.replaceChildren(...(failed.length || told.length > 1
      ? [el("ul", { class: "files" }, told.map((file) => el("li", { class: file.result === "failed" ? "danger" : "" }, `${file.name}: ${file.reason || (RESULTS[file.result] ?? file.result)}`)))] : []));
  }

  fail(problem) {
    this.bar.hidden = true;
    this.cancelled.hidden = true;
    this.words.textContent = "";
    this.rest.replaceChildren(problemView(problem));
  }
}
