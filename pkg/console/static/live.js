// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The page is fetched again after changes on the hub, and its main part is replaced: the server renders
// everything. A form with focus is not replaced.
const live = document.getElementById("live");
const events = new EventSource(document.getElementById("main").dataset.events);
let loading = false;
let again = false;

async function refresh() {
  const main = document.getElementById("main");
  if (loading) { again = true; return; }
  if (main.querySelector("form[method=post]") || main.contains(document.activeElement) && document.activeElement.matches("input, select")) { return; }
  loading = true;
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
    loading = false;
    if (again) { again = false; refresh(); }
  }
}

events.addEventListener("message", refresh);
events.addEventListener("open", () => { live.textContent = ""; });
events.addEventListener("error", () => { live.textContent = "Live updates stopped: the console has ended or is unreachable."; });
