"use strict";
// The page is complete without this: it only adds sorting, filters and toggles.
(() => {
  const page = document.documentElement;
  const find = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  find("controls").hidden = false;
  find("controls").addEventListener("submit", (event) => event.preventDefault());

  find("theme").addEventListener("change", (event) => {
    page.dataset.theme = event.target.value;
  });
  find("intervals").addEventListener("change", (event) => {
    page.classList.toggle("no-intervals", !event.target.checked);
  });
  find("norm")?.addEventListener("change", (event) => {
    for (const part of all("[data-norm]")) {
      part.hidden = event.target.value !== "" && part.dataset.norm !== event.target.value;
    }
  });

  const rows = all("#overview tbody tr");
  const filter = () => {
    const part = find("model").value.trim().toLowerCase();
    const data = find("data").value;
    const status = find("status").value;
    let shown = 0;
    for (const row of rows) {
      const wanted =
        row.dataset.model.toLowerCase().includes(part) &&
        (data === "" || row.dataset.data === data) &&
        (status === "" || row.dataset.status === status);
      row.hidden = !wanted;
      for (const number of row.dataset.ledgers.split(" ")) {
        find(`ledger-${number}`).hidden = !wanted;
      }
      shown += wanted;
    }
    find("shown").textContent = shown === rows.length ? "" : `${shown} of ${rows.length} models`;
  };
  for (const id of ["model", "data", "status"]) {
    find(id)?.addEventListener("input", filter);
  }

  // Cells without a number come last, whichever way the column is sorted.
  const order = (place, kind, sign) => (first, second) => {
    const [a, b] = [first.cells[place], second.cells[place]];
    if (kind === "text") {
      const told = (cell) => cell.dataset.value ?? cell.textContent.trim();
      return sign * told(a).localeCompare(told(b), "en");
    }
    const [x, y] = [a.dataset.value, b.dataset.value];
    if (x === undefined || y === undefined) {
      return (x === undefined) - (y === undefined);
    }
    return sign * (Number(x) - Number(y));
  };
  for (const head of all("#overview th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending" ||
        (head.dataset.sort === "number" && head.getAttribute("aria-sort") === null);
      for (const other of all("#overview th[aria-sort]")) {
        other.removeAttribute("aria-sort");
      }
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = [...rows].sort(order(head.cellIndex, head.dataset.sort, down ? -1 : 1));
      find("overview").tBodies[0].append(...sorted);
    });
  }

  const opened = () => {
    const target = location.hash && find(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", opened);
  opened();
})();
