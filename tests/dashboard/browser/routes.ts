// The routes that the tests of rights cover, as patterns of the router.

// The pages of everyone, and the routes without a login (rights.spec.ts).
export const pages = ["/", "/machines/:namespace/:name", "/machines/:namespace/:name/:environment/terminal", "/machines/:namespace/:name/:environment/terminal/socket", "/machines/:namespace/:name/:environment/console", "/machines/:namespace/:name/:environment/console/socket", "/new/:course/:template", "/courses", "/files", "/account", "/events"];
export const open = ["/healthz", "/assets/:hash/:file", "/login", "/login/machine", "/callback", "/logged-out", "/help"];

// The pages of teachers and administrators (rights-teachers.spec.ts).
export const teaching = [
  "/courses/:course",
  "/courses/:course/class.csv",
  "/courses/:course/actions/:verb",
  "/courses/:course/actions/:verb/result.csv",
  "/courses/:course/people",
  "/courses/:course/person/:person",
  "/courses/:course/people/import",
  "/courses/:course/templates",
  "/courses/:course/templates/new",
  "/courses/:course/templates/:template",
  "/courses/:course/templates/:template/edit",
  "/personal/templates",
  "/personal/templates/new",
  "/personal/templates/:template",
  "/personal/templates/:template/edit",
  "/courses/:course/volumes",
  "/courses/:course/exams",
  "/courses/:course/exams.csv",
  "/courses/:course/announcements",
  "/admin",
  "/admin/courses",
  "/admin/courses/:course",
  "/admin/people",
  "/admin/people/:user",
  "/admin/cluster",
];
// Their changes. Some are sent to the path of a page.
export const changing = [
  ...["approve", "reject", "promote", "demote", "remove", "add"].map((word) => `/courses/:course/people/${word}`),
  "/courses/:course/templates/:template/delete",
  "/personal/templates/:template/delete",
  "/courses/:course/volumes/create",
  "/courses/:course/volumes/delete",
  "/courses/:course/exams/retry",
  "/courses/:course/announcements/publish",
  "/courses/:course/announcements/withdraw",
  "/admin/announcements/publish",
  "/admin/announcements/withdraw",
  "/admin/create-course",
  "/admin/courses/:course/edit",
  "/admin/courses/:course/delete",
  ...["keep", "limit", "restore", "disable", "give", "take", "enrol", "remove"].map((word) => `/admin/people/:user/${word}`),
];
