// Keeps a page fresh while one looks: fetches it again every five seconds and changes the main part.
// The page works without it. It waits while the tab is hidden or a form is being used.
"use strict";
async function refresh() {
  const main = document.getElementById("content");
  const busy = main.contains(document.activeElement) && document.activeElement !== main;
  if (!document.hidden && !busy) {
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" } });
      if (response.ok && !response.redirected) {
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
        main.innerHTML = fresh.getElementById("content").innerHTML;
      }
    } catch (error) {
      // The service is away: the page stays as it is, and the next try may work.
    }
  }
  setTimeout(refresh, 5000);
}
setTimeout(refresh, 5000);
