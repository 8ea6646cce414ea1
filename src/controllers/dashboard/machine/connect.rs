//! The HTML of the ways to connect to a machine: its environments, each with its desktop and its SSH login, and the help
//! for both.

use maud::{Markup, html};

use super::card::Card;
use super::model::{Machine, Part, Ssh};
use crate::api::names::check_dns_label;
use crate::api::shown::shown;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::ui::parts;
use crate::controllers::dashboard::ui::view::View;

/// Creates a key pair. It is the same command on every system.
const CREATE_KEY: &str = "ssh-keygen -t ed25519";
/// The commands that show the public key.
const WINDOWS_KEY: &str = "type $env:USERPROFILE\\.ssh\\id_ed25519.pub";
const UNIX_KEY: &str = "cat ~/.ssh/id_ed25519.pub";

/// The environments of a machine, and how to open each of them.
pub fn connect(view: &View<'_>, machine: &Machine) -> Markup {
    let texts = view.texts();
    let all = &machine.environments;
    let has_desktop = all.iter().any(|part| part.is_desktop && part.url.is_some());
    let login = all.iter().find_map(|part| Login::of(&machine.card, part, all.len() == 1));
    html! {
        @if !all.is_empty() {
            section aria-labelledby="environments" {
                h2 #environments { (texts.connect_help.how) }
                ul.cards { @for part in all { li { (environment(view, part)) } } }
                @if has_desktop { (desktop(view)) }
                @if let Some(login) = &login { (ssh_help(view, login)) }
            }
        }
    }
}

fn environment(view: &View<'_>, part: &Part) -> Markup {
    let texts = view.texts();
    html! {
        article {
            div.top { h3 { (shown(&part.name)) } (parts::badge(view, part.standing)) }
            @if let Some(url) = part.url.as_deref().filter(|_| part.standing == Standing::Ready) {
                p { a href=(url) target="_blank" rel="noopener noreferrer" { (texts.open) (parts::unseen(&part.name)) } }
            }
            @for (path, label) in [(&part.terminal, &texts.to_terminal), (&part.console, &texts.to_console)] {
                @if let Some(path) = path {
                    p { a href=(path) target="_blank" rel="noopener noreferrer" { (label) (parts::unseen(&part.name)) } }
                }
            }
            @if let Some(of) = &part.ssh {
                (ssh(view, part, of))
            } @else if !part.can_be_opened() && part.standing == Standing::Ready {
                p { (texts.connect_help.none) }
            }
        }
    }
}

/// The SSH login of an environment.
fn ssh(view: &View<'_>, part: &Part, ssh: &Ssh) -> Markup {
    let texts = view.texts();
    let help = &texts.connect_help;
    html! {
        @match &ssh.command {
            Some(command) => {
                p { (texts.ssh) ": " (parts::copied(view, command, &part.name)) }
                @if let Some((_, address)) = hosts(command) {
                    p { (help.address) ": " (parts::copied(view, &with_port(address), &part.name)) }
                }
            },
            None => p { (texts.ssh) ": " (texts.no_ssh_yet) },
        }
        @if !ssh.fingerprint.is_empty() { p { (help.host_key) ": " (parts::copied(view, &ssh.fingerprint, &part.name)) } }
        p.hint { (texts.ssh_hint) " " a href={ (paths::ACCOUNT) "#keys" } { (help.to_account) } }
    }
}

/// The help for desktops in the browser.
fn desktop(view: &View<'_>) -> Markup {
    let help = &view.texts().connect_help;
    let subjects = [
        (&help.clipboard, &help.clipboard_hint),
        (&help.keyboard, &help.keyboard_hint),
        (&help.full_screen, &help.full_screen_hint),
        (&help.tablet, &help.tablet_hint),
    ];
    html! {
        details.fold #desktop-help hx-nonce=(view.nonce) {
            summary { (help.desktop) }
            dl { @for (subject, hint) in subjects { dt { (subject) } dd { (hint) } } }
        }
    }
}

/// The steps to a first login by SSH.
fn ssh_help(view: &View<'_>, login: &Login<'_>) -> Markup {
    let help = &view.texts().connect_help;
    let systems = [(&help.windows, WINDOWS_KEY), (&help.mac, UNIX_KEY), (&help.linux, UNIX_KEY)];
    let config = login.config();
    html! {
        details.fold #ssh-help hx-nonce=(view.nonce) {
            summary { (help.ssh) }
            ol.steps {
                li { p { (help.create_key) " " (parts::copied(view, CREATE_KEY, "")) } p.hint { (help.create_key_hint) } }
                li {
                    p { (help.add_key) " " a href={ (paths::ACCOUNT) "#keys" } { (help.to_account) } }
                    dl { @for (system, command) in systems { dt { (system) } dd { (parts::copied(view, command, system)) } } }
                }
                li { p { (help.log_in) } p.hint { (help.host_key_hint) } }
                li {
                    p { (help.short_name) }
                    p.hint { (help.short_name_hint) }
                    pre tabindex="0" { code { (config) } }
                    (parts::copy(view, &config, &help.short_name))
                    p { (help.then.fill(&[("command", &format!("ssh {}", login.alias))])) }
                }
            }
        }
    }
}

/// A login by SSH, for the configuration file of the user.
struct Login<'a> {
    /// The name of the machine in that file.
    alias: String,
    namespace: &'a str,
    bastion: &'a str,
    address: &'a str,
}

impl<'a> Login<'a> {
    /// Returns the login of an environment; `None` if it is off or has no SSH.
    fn of(card: &'a Card, part: &'a Part, is_single: bool) -> Option<Self> {
        let (bastion, address) = hosts(part.ssh.as_ref()?.command.as_deref()?)?;
        let is_plain = check_dns_label(&part.name).is_ok();
        let alias =
            if is_single || !is_plain { card.name.clone() } else { format!("{}-{}", card.name, part.name) };
        Some(Self { alias, namespace: &card.namespace, bastion, address })
    }

    /// Returns the lines for `~/.ssh/config`. Addresses are assigned again, so the host key is stored by name.
    fn config(&self) -> String {
        let Self { alias, namespace, bastion, address } = self;
        format!(
            "Host {alias}\n    HostName {address}\n    HostKeyAlias {alias}.{namespace}\n    User crownlabs\n    \
             ProxyJump bastion@{bastion}\n"
        )
    }
}

/// Returns the bastion and the address of the machine in an SSH command of a page.
fn hosts(command: &str) -> Option<(&str, &str)> {
    command.strip_prefix("ssh -J bastion@")?.split_once(" crownlabs@")
}

/// Returns an address with the port of SSH.
fn with_port(address: &str) -> String {
    if address.contains(':') { format!("[{address}]:22") } else { format!("{address}:22") }
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn the_command_of_a_page_has_the_bastion_and_the_address() {
        let command = "ssh -J bastion@ssh.example.org:2222 crownlabs@10.96.3.7";
        assert_eq!(hosts(command), Some(("ssh.example.org:2222", "10.96.3.7")));
        assert_eq!(hosts("ssh crownlabs@10.96.3.7"), None);
        for (host, expected) in [
            ("10.96.3.7", "10.96.3.7:22"),
            ("2001:db8::1", "[2001:db8::1]:22"),
            ("lab-desktop.tenant-ada", "lab-desktop.tenant-ada:22"),
        ] {
            assert_eq!(with_port(host), expected);
        }
    }

    #[test]
    fn the_configuration_names_the_machine_and_its_host_key() {
        let login = Login {
            alias: "net-1".to_owned(),
            namespace: "tenant-ada",
            bastion: "ssh.example.org",
            address: "10.96.3.7",
        };
        let lines = [
            "Host net-1",
            "    HostName 10.96.3.7",
            "    HostKeyAlias net-1.tenant-ada",
            "    User crownlabs",
            "    ProxyJump bastion@ssh.example.org",
        ];
        assert_eq!(login.config().lines().collect::<Vec<_>>(), lines);
    }
}
