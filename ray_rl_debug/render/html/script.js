"use strict";
(() => {
  const open = (target) => {
    for (let box = target; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
  };
  const follow = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target) return;
    open(target);
    if (target.firstElementChild && target.firstElementChild.tagName === "DETAILS") target.firstElementChild.open = true;
    target.scrollIntoView({ block: "center" });
    if (target.tagName === "TR" || target.tagName === "DETAILS") {
      target.tabIndex = -1;
      target.focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", follow);
  follow();

  // One stop for the Tab key in a matrix of a thousand cells; the arrows walk inside.
  const told = document.getElementById("told");
  const cells = [...document.querySelectorAll(".matrix a.cell")];
  const first = cells.find((cell) => cell.classList.contains("bad")) || cells[0];
  const tell = (cell) => { if (told && cell) told.textContent = cell.title; };
  for (const cell of cells) cell.tabIndex = cell === first ? 0 : -1;
  const matrix = document.querySelector(".matrix");
  if (matrix && cells.length) {
    tell(first);
    matrix.addEventListener("pointerover", (event) => tell(event.target.closest("a.cell")));
    matrix.addEventListener("focusin", (event) => tell(event.target.closest("a.cell")));
    const beside = (cell, step) => cells[cells.indexOf(cell) + step];
    const across = (cell, way) => {
      const here = cell.getBoundingClientRect();
      const row = cells.map((other) => [other, other.getBoundingClientRect()]).filter(([, box]) => way * (box.top - here.top) > here.height / 2);
      const top = Math.min(...row.map(([, box]) => way * box.top));
      const near = row.filter(([, box]) => Math.abs(way * box.top - top) < here.height / 2);
      near.sort(([, a], [, b]) => Math.abs(a.left - here.left) - Math.abs(b.left - here.left));
      return near.length ? near[0][0] : undefined;
    };
    const walks = {
      ArrowRight: (cell) => beside(cell, 1), ArrowLeft: (cell) => beside(cell, -1), Home: () => cells[0], End: () => cells[cells.length - 1],
      ArrowDown: (cell) => across(cell, 1), ArrowUp: (cell) => across(cell, -1),
    };
    matrix.addEventListener("keydown", (event) => {
      const cell = event.target.closest("a.cell");
      if (!cell || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(walks, event.key)) return;
      event.preventDefault();
      const next = walks[event.key](cell);
      if (!next) return;
      cell.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }

  const find = document.getElementById("find");
  if (find) {
    const rows = [...document.querySelectorAll("#processes tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
    find.closest("p").hidden = false;
    find.addEventListener("input", () => {
      const wanted = find.value.trim().toLowerCase();
      let shown = 0;
      for (const [row, text] of rows) shown += !(row.hidden = !text.includes(wanted));
      document.getElementById("found").textContent = wanted ? `${shown} of ${rows.length}` : "";
    });
  }

  // The clipboard is not given to pages opened from a file in every browser: then the text is selected instead.
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(source);
      }
    });
  }
  for (const time of document.querySelectorAll("time")) time.title = new Date(time.dateTime).toLocaleString();
})();
