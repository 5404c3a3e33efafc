// Scripts of each page: the list of versions, and a button that copies a block of code.
"use strict";

const root = document.documentElement.dataset.content_root ?? "./";

/** Lead to the same page of another version, or to its first page if it has no such page. */
async function open(event, address, home) {
  if (!location.protocol.startsWith("http") || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const answer = await fetch(address, { method: "HEAD" }).catch(() => null);
  location.href = answer?.ok ? address : home;
}

// A script, because pages that are opened from a disk cannot read other files.
const versions = document.createElement("script");
versions.src = `${root}../versions.js`;
versions.addEventListener("load", () => {
  const page = `${DOCUMENTATION_OPTIONS.pagename}.html`;
  for (const menu of document.querySelectorAll(".versions .dropdown-menu")) {
    menu.replaceChildren(
      ...window.botyardVersions.map(({ version, name }) => {
        const item = document.createElement("a");
        const home = `${root}../${version}/index.html`;
        item.className = "dropdown-item";
        item.classList.toggle("active", version === DOCUMENTATION_OPTIONS.VERSION);
        item.textContent = name;
        item.href = `${root}../${version}/${page}`;
        item.addEventListener("click", (event) => open(event, item.href, home));
        return item;
      }),
    );
  }
});
document.head.append(versions);

for (const block of document.querySelectorAll("div.highlight")) {
  const button = document.createElement("button");
  button.className = "copy btn btn-sm";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    // Prompts and printed results are no part of what a reader wants to run.
    const code = block.querySelector("pre").cloneNode(true);
    code.querySelectorAll(".gp, .go, .linenos").forEach((part) => part.remove());
    await navigator.clipboard.writeText(code.textContent.trimEnd() + "\n");
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  block.append(button);
}
