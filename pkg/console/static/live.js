// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The page is asked for again when the hub says that something has changed: the server made
// all of it, and only the main part is put in its place. A form that is being filled in stays.
const live = document.getElementById("live");
const events = new EventSource(document.getElementById("main").dataset.events);
let asking = false;
let again = false;

async function refresh() {
  const main = document.getElementById("main");
  if (asking) { again = true; return; }
  if (main.querySelector("form[method=post]") || main.contains(document.activeElement) && document.activeElement.matches("input, select")) { return; }
  asking = true;
  try {
    const reply = await fetch(location.href, { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const fresh = page.getElementById("main");
    if (fresh && fresh.innerHTML !== main.innerHTML) {
      const focused = document.activeElement && document.activeElement.getAttribute("href");
      main.replaceChildren(...fresh.childNodes);
      if (focused) {
        const same = Array.from(main.querySelectorAll("a")).find((a) => a.getAttribute("href") === focused);
        if (same) { same.focus(); }
      }
    }
  } finally {
    asking = false;
    if (again) { again = false; refresh(); }
  }
}

events.addEventListener("message", refresh);
events.addEventListener("open", () => { live.textContent = ""; });
events.addEventListener("error", () => { live.textContent = "Not live: the console has ended, or the hub is away."; });
