import "./theme.js";
import "./times.js";
import "./hotkeys.js";
import "./jump.js";
import "./live.js";
import "./inbox.js";
import "./filters.js";
import "./gate-form.js";
import "./draft.js";
import "./ask.js";
import "./gantt.js";
import "./timeline.js";
import "./order.js";
import "./audit.js";

for (const element of document.querySelectorAll("[data-needs-script]")) element.hidden = false;
