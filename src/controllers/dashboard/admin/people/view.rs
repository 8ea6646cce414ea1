//! The HTML of the pages of people.

use maud::{Markup, html};

use super::actions::{DISABLE, ENROL, GIVE, KEEP, LIMIT, REMOVE, RESTORE, TAKE};
use super::{People, Person};
use crate::api::Tenant;
use crate::api::quantity::RawQuantity;
use crate::api::shown::{escaped, message, shown};
use crate::api::tenant::{Role, TenantQuota, TenantWorkspace};
use crate::api::usage::Measure;
use crate::api::why::waits;
use crate::controllers::dashboard::action::entry::Action;
use crate::controllers::dashboard::admin::courses::view::more;
use crate::controllers::dashboard::admin::frame::{Administrator, Tab, frame, group};
use crate::controllers::dashboard::history::view::history;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::field::{Form, form};
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{links, time};

/// The maximum number of courses of a person in the list.
const MOST_COURSES: usize = 4;

/// Returns the path of a page or an action of a person.
fn path(pattern: &str, user: &str) -> String {
    paths::fill(pattern, |_| links::encoded(user))
}

fn full_name(tenant: &Tenant) -> String {
    shown(&format!("{} {}", tenant.spec.first_name, tenant.spec.last_name)).into_owned()
}

/// Renders the list, or the result of a search.
pub fn list(view: &View<'_>, people: &People) -> Markup {
    let texts = view.texts();
    let content = html! {
        section aria-labelledby="people" {
            h2 #people { (texts.course_pages.people) }
            form.search role="search" method="get" action=(paths::ADMIN_PEOPLE) {
                label for="search" { (texts.admin.search_people) }
                input type="search" id="search" name="q" value=(view.search) maxlength="100" hx-morph-skip hx-nonce=(view.nonce);
                button type="submit" { (texts.search) }
            }
            p.hint { (texts.admin.search_hint) }
            @if let Some(found) = people.found {
                p {
                    (texts.admin.found.of(&found.to_string())) " "
                    @if found > people.rows.len() { (texts.admin.refine) " " }
                    a href=(paths::ADMIN_PEOPLE) { (texts.show_all) }
                }
            }
            @if !people.rows.is_empty() { (group(&texts.course_pages.people, &rows(view, &people.rows))) }
            (more(view, paths::ADMIN_PEOPLE, &people.next))
        }
    };
    frame(view, Tab::People, "", &content)
}

fn rows(view: &View<'_>, people: &[Tenant]) -> Markup {
    let texts = view.texts();
    html! {
        table {
            thead {
                tr {
                    th scope="col" { (texts.user_name) }
                    th scope="col" { (texts.name) }
                    th scope="col" { (texts.email) }
                    th scope="col" { (texts.admin.last_login) }
                    th scope="col" { (texts.courses) }
                    th scope="col" { (texts.admin.state) }
                }
            }
            tbody {
                @for tenant in people {
                    tr id=(parts::id("row", tenant.name())) {
                        th scope="row" { a href=(path(paths::ADMIN_PERSON, tenant.name())) { (shown(tenant.name())) } }
                        td { (full_name(tenant)) }
                        td { (shown(&tenant.spec.email)) }
                        td { (last_login(view, tenant)) }
                        td { (escaped(&courses(tenant))) }
                        td { (state(view, tenant)) }
                    }
                }
            }
        }
    }
}

fn last_login(view: &View<'_>, tenant: &Tenant) -> Markup {
    if let Some(at) = &tenant.spec.last_login {
        time::ago(view, at.0)
    } else {
        html! { (view.texts().admin.never) }
    }
}

/// Returns the first courses of a person.
fn courses(tenant: &Tenant) -> String {
    let all = &tenant.spec.workspaces;
    let names = all.iter().take(MOST_COURSES).map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ");
    if all.len() > MOST_COURSES { format!("{names}, …") } else { names }
}

/// Whether a person was disabled: the quota allows no machine.
fn is_disabled(tenant: &Tenant) -> bool {
    tenant.spec.quota.as_ref().is_some_and(|quota| quota.instances == 0)
}

/// The state of a person: disabled, or why the Tenant is not ready.
fn state(view: &View<'_>, tenant: &Tenant) -> Markup {
    let texts = &view.texts().admin;
    let waits = waits(&tenant.status.conditions);
    html! {
        @if tenant.is_terminating() { (texts.terminating) }
        @else if is_disabled(tenant) { (texts.disabled) }
        @else if let Some(wait) = waits.first() { span.error { (message(&wait.message)) } }
        @else { (texts.works) }
    }
}

/// The page of a person, with the right to change it.
struct Of<'a> {
    view: &'a View<'a>,
    administrator: &'a Administrator<'a>,
    tenant: &'a Tenant,
}

/// Renders the page of a person.
pub fn page(view: &View<'_>, administrator: &Administrator<'_>, person: &Person) -> Markup {
    let texts = view.texts();
    let tenant = &person.tenant;
    let of = Of { view, administrator, tenant };
    let content = html! {
        section aria-labelledby="person" {
            h2 #person { (full_name(tenant)) }
            dl {
                dt { (texts.user_name) } dd { (shown(tenant.name())) }
                dt { (texts.email) } dd { (shown(&tenant.spec.email)) }
                dt { (texts.admin.last_login) } dd { (last_login(view, tenant)) }
                dt { (texts.admin.namespace) } dd { (shown(&tenant.status.personal_namespace.name)) }
                dt { (texts.admin.state) } dd { (state(view, tenant)) }
            }
            p.hint { (texts.admin.keep_hint) }
            div.actions { (of.button(&KEEP, &full_name(tenant), "person", &[])) }
        }
        section aria-labelledby="courses" {
            h2 #courses { (texts.courses) }
            @if tenant.spec.workspaces.is_empty() { p.empty { (texts.admin.no_enrolments) } }
            ul.rows { @for entry in &tenant.spec.workspaces { li { (of.enrolment(entry)) } } }
            (of.form(&ENROL, &[("role", "user")]))
        }
        (of.quota())
        (of.personal())
        (history(view, &person.history))
    };
    frame(view, Tab::People, tenant.name(), &content)
}

impl Of<'_> {
    /// The form of an action, if the user may do it.
    fn form(&self, action: &'static Action, values: &[(&str, &str)]) -> Markup {
        if !self.administrator.may(&action.right) {
            return Markup::default();
        }
        let hidden = [("uid", self.tenant.uid())];
        let path = path(action.path, self.tenant.name());
        form(self.view, &Form { action, path: &path, hidden: &hidden, values, is_main: false })
    }

    /// The button of an action, if the user may do it. `key` distinguishes its id.
    fn button(&self, action: &Action, about: &str, key: &str, fields: &[(&str, &str)]) -> Markup {
        if !self.administrator.may(&action.right) {
            return Markup::default();
        }
        let fields = [&[("uid", self.tenant.uid())], fields].concat();
        let path = path(action.path, self.tenant.name());
        parts::button(self.view, &Button { action, path: &path, about, key, fields: &fields, warning: None })
    }

    /// An enrolment, and the button that ends it.
    fn enrolment(&self, entry: &TenantWorkspace) -> Markup {
        let (texts, name) = (self.view.texts(), entry.name.as_str());
        let is_failing = self.tenant.status.failing_workspaces.contains(&entry.name);
        let role = match &entry.role {
            Role::User => &texts.admin.role_user,
            Role::Manager => &texts.admin.role_manager,
            Role::Candidate => &texts.admin.role_candidate,
            Role::Other(role) => return html! { p.error { (shown(name)) ": " (shown(role)) } },
        };
        html! {
            div.row {
                p {
                    a href=(paths::fill(paths::ADMIN_COURSE, |_| links::encoded(name))) { (shown(name)) } ": " (role)
                    @if is_failing { " " span.error { (texts.admin.failing) } }
                }
                (self.button(&REMOVE, name, name, &[("course", name)]))
            }
        }
    }

    /// The quota: the effective one, and the one that replaces the quota of the courses.
    fn quota(&self) -> Markup {
        let (texts, spec) = (self.view.texts(), &self.tenant.spec);
        let current = spec.quota.as_ref().unwrap_or(&self.tenant.status.quota);
        let instances = current.instances.max(1).to_string();
        let values = [
            ("cpu", current.cpu.as_str()),
            ("memory", current.memory.as_str()),
            ("instances", instances.as_str()),
        ];
        html! {
            section aria-labelledby="quota" {
                h2 #quota { (texts.admin.quota) }
                p { (escaped(&self.words(&self.tenant.status.quota))) }
                p.hint { @if spec.quota.is_some() { (texts.admin.quota_own) } @else { (texts.admin.quota_of_courses) } }
                (self.form(&LIMIT, &values))
                div.actions {
                    @if spec.quota.is_some() { (self.button(&RESTORE, &texts.admin.quota, "quota", &[])) }
                    @if !is_disabled(self.tenant) { (self.button(&DISABLE, &full_name(self.tenant), "person", &[])) }
                }
            }
        }
    }

    /// Returns a quota in one sentence.
    fn words(&self, quota: &TenantQuota) -> String {
        let texts = self.view.texts();
        let amount = |raw: &RawQuantity| raw.parse().unwrap_or_default();
        let parts = [
            texts.amount_instances.of(&quota.instances.to_string()),
            texts.named(&Measure::Cpu, &amount(&quota.cpu)),
            texts.named(&Measure::Memory, &amount(&quota.memory)),
        ];
        parts.join(", ")
    }

    /// The personal workspace.
    fn personal(&self) -> Markup {
        let (texts, spec) = (self.view.texts(), &self.tenant.spec);
        let own = spec.personal_workspace.clone().unwrap_or_default();
        let instances = own.instances.max(1).to_string();
        let values = [
            ("cpu", own.cpu.as_str()),
            ("memory", own.memory.as_str()),
            ("instances", instances.as_str()),
            ("disk", own.disk.as_ref().map_or("", RawQuantity::as_str)),
        ];
        html! {
            section aria-labelledby="personal" {
                h2 #personal { (texts.personal) }
                p.hint { (texts.admin.personal_hint) }
                @if !spec.has_personal_workspace() { p.empty { (texts.admin.no_personal) } }
                (self.form(&GIVE, &values))
                @if spec.has_personal_workspace() {
                    div.actions { (self.button(&TAKE, &texts.personal, "personal", &[])) }
                }
            }
        }
    }
}
