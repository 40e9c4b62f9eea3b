// Shows the values under the pointer. The page says all it has to say without this.
for (const holder of document.querySelectorAll(".hover")) {
  const data = JSON.parse(document.getElementById(holder.dataset.values).textContent);
  const svg = holder.querySelector("svg");
  const read = (text) => {
    const [low, high, kind, start, end] = text.split(" ");
    const map = kind === "log" ? Math.log : Number;
    return (value) => +start + ((map(value) - map(+low)) / (map(+high) - map(+low))) * (end - start);
  };
  const x = read(svg.dataset.x);
  const [, , , bottom, top] = svg.dataset.y.split(" ");
  const tip = document.createElement("div");
  tip.className = "tip";
  holder.append(tip);
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
  cursor.setAttribute("class", "cursor");
  cursor.setAttribute("y1", top);
  cursor.setAttribute("y2", bottom);
  cursor.style.display = "none";
  svg.append(cursor);
  const hide = () => { tip.style.display = cursor.style.display = "none"; };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const frame = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / frame.width;
    const at = (event.clientX - frame.left) * scale;
    const rows = [];
    let place = null, name = "", closest = Infinity;
    for (const line of data.series) {
      let best = null, gap = Infinity;
      for (const point of line.points) {
        const distance = Math.abs(x(point[0]) - at);
        if (distance < gap) { gap = distance; best = point; }
      }
      if (best === null || gap > 24) continue;
      if (gap < closest) { closest = gap; place = x(best[0]); name = best[2]; }
      rows.push([line, best]);
    }
    if (place === null) return hide();
    rows.sort((a, b) => b[1][1] - a[1][1]);
    tip.replaceChildren(document.createTextNode(data.x + ": " + name));
    const table = document.createElement("table");
    for (const [line, best] of rows) {
      const row = table.insertRow();
      const label = row.insertCell();
      const swatch = document.createElement("i");
      swatch.style.background = "var(--s" + line.slot + ")";
      label.append(swatch, line.label);
      row.insertCell().textContent = best[3];
    }
    tip.append(table);
    cursor.setAttribute("x1", place);
    cursor.setAttribute("x2", place);
    tip.style.display = cursor.style.display = "block";
    const side = place / scale;
    const left = side > frame.width / 2 ? side - tip.offsetWidth - 12 : side + 12;
    tip.style.left = Math.max(0, left) + "px";
    tip.style.top = (+top / scale + 8) + "px";
  });
}
