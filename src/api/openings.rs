//! The URL of an environment, and the ways to open it in a browser. The status, the dashboard and `crownlabs why` use
//! these functions; `docs/access.md` has their table.

use serde::{Deserialize, Serialize};

use super::environment::EnvironmentType;
use super::instance::{EnvironmentStatus, Instance, InstancePhase as Phase};
use super::template::Template;

/// The page of an environment's web interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page<'a> {
    /// The environment serves it, below this path of its host, without a slash at the end.
    Own(&'a str),
    /// The web interface of the site has it: a virtual machine of the classic layout at the common host. The text is the
    /// path of the login that leads to it; empty without one.
    OfSite(&'a str),
}

impl Page<'_> {
    /// Returns its URL for an Instance with this uid.
    pub fn url(self, host: &str, uid: &str) -> String {
        match self {
            Self::Own(path) => format!("https://{host}{path}/"),
            Self::OfSite(login) => format!("https://{host}{login}{}", path_of_site(uid)),
        }
    }
}

/// The path of the page that the web interface of the site has about an Instance.
fn path_of_site(uid: &str) -> String {
    format!("/instance/{uid}/")
}

/// Whether the web interface of the site has the page of a URL, see [`Page::OfSite`].
fn is_of_site(url: &str, uid: &str) -> bool {
    !uid.is_empty() && url.ends_with(&path_of_site(uid))
}

/// Where users see their Instances, for the links in mails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The origin of the dashboard (`dashboard.publicUrl`); empty if it is not known.
    pub dashboard: String,
    /// The host of the web interface of the site (`instance.websiteBaseUrl`).
    pub website: String,
}

impl Site {
    /// Returns the page of an Instance in the dashboard, from which users open it. Without a dashboard, the first page of
    /// the web interface.
    pub fn page(&self, instance: &Instance) -> String {
        if self.dashboard.is_empty() {
            return format!("https://{}", self.website);
        }
        // Names of objects need no encoding.
        format!("{}/machines/{}/{}", self.dashboard, instance.namespace(), instance.name())
    }
}

/// A way to open an environment in a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// The URL of its desktop or web application.
    Web,
    /// The screen of the virtual machine, in the dashboard.
    Console,
    /// A terminal, in the dashboard.
    Terminal,
}

/// The ways to open an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ways<'a> {
    /// The URL of its desktop or web application; `None` while it has no URL, or if its page may be missing
    /// ([`Page::OfSite`]) and the console opens instead.
    pub web: Option<&'a str>,
    /// The type of the environment, if the Template could be read.
    pub environment_type: Option<&'a EnvironmentType>,
    /// Whether a terminal can be opened.
    pub has_terminal: bool,
    /// Whether the console can be opened, also while the machine boots.
    pub has_console: bool,
    /// The way that *Connect* opens once the environment is ready; `None` if there is none.
    pub connect: Option<Way>,
}

impl Ways<'_> {
    /// Whether its page is a desktop, and not a web application. An unknown type counts as a desktop.
    pub fn is_desktop(&self) -> bool {
        self.environment_type != Some(&EnvironmentType::Standalone)
    }

    /// Whether it can have an SSH login: containers have no SSH server. An unknown type counts as a virtual machine.
    pub fn has_ssh(&self) -> bool {
        self.environment_type.is_none_or(EnvironmentType::is_vm)
    }
}

/// The facts that decide the ways to open an Instance.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The Instance.
    pub instance: &'a Instance,
    /// Its Template, if it could be read.
    pub template: Option<&'a Template>,
    /// Whether terminals in the browser are configured.
    pub has_terminals: bool,
    /// Whether the user may open the consoles of the namespace.
    pub has_consoles: bool,
}

impl<'a> Facts<'a> {
    /// Returns the ways to open an environment of the Instance.
    pub fn ways(&self, environment: &'a EnvironmentStatus) -> Ways<'a> {
        let Self { instance, template, has_terminals, has_consoles } = *self;
        let spec = template.and_then(|template| template.spec.environment(&environment.name));
        let type_ = spec.map(|spec| &spec.environment_type);
        let is_machine = type_.is_none_or(EnvironmentType::is_vm);
        let runs = instance.spec.running && !instance.is_terminating();
        let has_terminal = has_terminals && is_machine && runs && !environment.ip.is_empty();
        let is_on = matches!(environment.phase, Phase::Starting | Phase::Running | Phase::Ready);
        let has_console = has_consoles && is_machine && runs && is_on;
        let url = Some(environment.url.as_str()).filter(|url| !url.is_empty());
        // The page may exist: it stays the last resort for users without consoles.
        let web = url.filter(|url| !has_console || !is_of_site(url, instance.uid()));
        let others =
            if url.is_some() { [Way::Console, Way::Terminal] } else { [Way::Terminal, Way::Console] };
        let is_possible = |way: &Way| match way {
            Way::Web => web.is_some(),
            Way::Console => has_console,
            Way::Terminal => has_terminal,
        };
        Ways {
            web,
            environment_type: type_,
            has_terminal,
            has_console,
            connect: std::iter::once(Way::Web).chain(others).find(is_possible),
        }
    }

    /// Returns the name of the environment that *Connect* opens, with its ways: the first one with a page, and otherwise
    /// the first one that can be opened. The name is empty if the status has a URL and no environments, as the older Go
    /// operator wrote it.
    pub fn connect(&self) -> Option<(&'a str, Ways<'a>)> {
        let status = &self.instance.status;
        let all = || {
            status.environments.iter().map(move |environment| (&*environment.name, self.ways(environment)))
        };
        let page = || all().find(|(_, ways)| ways.connect == Some(Way::Web));
        let whole = || {
            let is_known = status.environments.iter().any(|environment| !environment.url.is_empty());
            let web = Some(status.url.as_str()).filter(|url| !is_known && !url.is_empty())?;
            let (environment_type, connect) = (None, Some(Way::Web));
            let ways =
                Ways { web: Some(web), environment_type, has_terminal: false, has_console: false, connect };
            Some(("", ways))
        };
        page().or_else(whole).or_else(|| all().find(|(_, ways)| ways.connect.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An Instance with the environment `main` at this URL and in this phase.
    fn instance(url: &str, phase: &str) -> Instance {
        let main = json!({"name": "main", "phase": phase, "url": url, "ip": "10.96.3.7"});
        serde_json::from_value(json!({
            "metadata": {"name": "vm", "namespace": "tenant-ada", "uid": "u1"},
            "spec": {},
            "status": {"phase": phase, "environments": [main]},
        }))
        .expect("an Instance")
    }

    fn template(kind: &str) -> Template {
        let environments = json!([{"name": "main", "environmentType": kind}]);
        serde_json::from_value(json!({"metadata": {"name": "t"}, "spec": {"environmentList": environments}}))
            .expect("a Template")
    }

    fn facts(instance: &Instance) -> Facts<'_> {
        Facts { instance, template: None, has_terminals: true, has_consoles: true }
    }

    fn connect(instance: &Instance, template: Option<&Template>, offered: [bool; 2]) -> Option<Way> {
        let [has_terminals, has_consoles] = offered;
        let facts = Facts { instance, template, has_terminals, has_consoles };
        facts.connect().and_then(|(_, ways)| ways.connect)
    }

    const DESKTOP: &str = "https://labs/instance/u1/vnc/";
    const SITE: &str = "https://labs/instance/u1/";
    const LOGIN: &str = "https://labs/instance/u1/_oauth2/start?rd=/instance/u1/";

    #[test]
    fn a_page_of_the_site_is_recognized_by_its_url() {
        for (page, expected) in [
            (Page::Own("/instance/u1/vnc"), DESKTOP),
            (Page::OfSite(""), SITE),
            (Page::OfSite("/instance/u1/_oauth2/start?rd="), LOGIN),
        ] {
            let url = page.url("labs", "u1");
            assert_eq!(url, expected);
            assert_eq!(is_of_site(&url, "u1"), matches!(page, Page::OfSite(_)), "{url}");
        }
        assert!(!is_of_site(SITE, "u2") && !is_of_site("https://labs/instance//", ""));
    }

    #[test]
    fn a_mail_links_to_the_page_of_the_machine_if_there_is_a_dashboard() {
        let of = |dashboard: &str| {
            let site = Site { dashboard: dashboard.to_owned(), website: "crownlabs.example.com".to_owned() };
            site.page(&instance("", "Ready"))
        };
        assert_eq!(of(""), "https://crownlabs.example.com", "as the Go operators");
        assert_eq!(of("https://labs.example.com"), "https://labs.example.com/machines/tenant-ada/vm");
    }

    #[test]
    fn connect_opens_the_page_or_else_the_console_or_a_terminal() {
        // The URL, whether it is a virtual machine, and the terminals and consoles that are offered.
        for (url, type_, offered, expected) in [
            (DESKTOP, "VirtualMachine", [true, true], Some(Way::Web)),
            (SITE, "VirtualMachine", [true, true], Some(Way::Console)),
            (LOGIN, "CloudVM", [true, true], Some(Way::Console)),
            (SITE, "LocalVM", [true, false], Some(Way::Web)),
            (SITE, "VirtualMachine", [false, false], Some(Way::Web)),
            ("", "VirtualMachine", [true, true], Some(Way::Terminal)),
            ("", "VirtualMachine", [false, true], Some(Way::Console)),
            ("", "VirtualMachine", [false, false], None),
            ("https://labs/instance/u1/app/", "Standalone", [true, true], Some(Way::Web)),
            ("https://labs/instance/u1/main/", "Container", [true, true], Some(Way::Web)),
            ("", "Container", [true, true], None),
        ] {
            let template = template(type_);
            let found = connect(&instance(url, "Ready"), Some(&template), offered);
            assert_eq!(found, expected, "{url} {type_} {offered:?}");
        }
        // Without the Template, the environment may be a virtual machine.
        assert_eq!(connect(&instance("", "Ready"), None, [true, true]), Some(Way::Terminal));
    }

    #[test]
    fn the_console_shows_a_machine_that_boots_and_no_machine_that_is_off() {
        let template = template("VirtualMachine");
        let has_console = |instance: &Instance| {
            let facts =
                Facts { instance, template: Some(&template), has_terminals: true, has_consoles: true };
            let ways = facts.ways(&instance.status.environments[0]);
            (ways.has_console, ways.has_terminal)
        };
        for (phase, expected) in
            [("Starting", true), ("Running", true), ("Ready", true), ("Off", false), ("Failed", false)]
        {
            assert_eq!(has_console(&instance("", phase)), (expected, true), "{phase}");
        }
        let mut stops = instance("", "Ready");
        stops.spec.running = false;
        assert_eq!(has_console(&stops), (false, false));
    }

    #[test]
    fn connect_prefers_the_environment_with_a_page() {
        let mut several = instance("", "Ready");
        let mut second = several.status.environments[0].clone();
        (second.name, second.url) = ("second".into(), "https://labs/instance/u1/second/".to_owned());
        several.status.environments.push(second);
        assert_eq!(facts(&several).connect().map(|(name, _)| name), Some("second"));
        let mut older = several;
        older.status.environments.clear();
        older.status.url = SITE.to_owned();
        let found = facts(&older).connect().map(|(name, ways)| (name, ways.web));
        assert_eq!(found, Some(("", Some(SITE))));
        older.status.url = String::new();
        assert_eq!(facts(&older).connect(), None);
    }
}
