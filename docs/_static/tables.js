// A field above every long table: only rows that have all of its words are shown. Without scripts the table is whole.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.tall")) {
    const rows = [...table.tBodies[0].rows];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const box = document.createElement("div");
    const label = document.createElement("label");
    const field = document.createElement("input");
    const count = document.createElement("span");
    box.className = "table-filter";
    field.type = "search";
    field.placeholder = "words, e.g. failed variance";
    label.append("Show rows with ", field);
    count.setAttribute("role", "status");
    box.append(label, " ", count);
    const filter = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, at) => {
        row.hidden = !words.every((word) => texts[at].includes(word));
        shown += !row.hidden;
      });
      count.textContent = words.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
    };
    field.addEventListener("input", filter);
    (table.closest(".table-wrapper") ?? table).before(box);
    filter();
  }
});
