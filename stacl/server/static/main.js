// The page has two views: the main view, and captions for an overlay or a second screen.

import { parameters } from "./settings.js";

if (parameters.get("view") === "captions") import("./captions.js");
else import("./page.js");
