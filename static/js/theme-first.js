// Runs before the first paint, so that a chosen theme never flashes. Everything else is in theme.js.
const chosen = /(?:^|; )hp-theme=(light|dark)/.exec(document.cookie);
if (chosen) document.documentElement.dataset.theme = chosen[1];
