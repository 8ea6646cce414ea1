//! The URL of each environment and what *Connect* opens, compared with the table of `docs/access.md`; uploads.

use super::*;
use crate::api::instance::InstancePhase;
use crate::api::labels::LARGE_UPLOADS;
use crate::api::openings::{Facts, Way};
use crate::config::{Access, AccessMode, GatewayApi, LocalVm, ParentRef, Urls};
use crate::controllers::shared::machine_host::HostKey;

/// The page with the table.
const DOCUMENT: &str = include_str!("../../../../../docs/access.md");
const MODES: [AccessMode; 4] =
    [AccessMode::Shared, AccessMode::PerInstance, AccessMode::Daemon, AccessMode::None];
const MACHINES: [&str; 3] = ["VirtualMachine", "CloudVM", "LocalVM"];
const CONTAINERS: [&str; 2] = ["Container", "Standalone"];

/// The configurations with this layout and these host names: with each access mode, and with Ingresses and routes.
fn configurations(layout: Layout, urls: Urls) -> Vec<InstanceConfig> {
    let parent = || ParentRef { name: "labs".to_owned(), namespace: "gateways".to_owned() };
    let config = |(mode, enabled)| InstanceConfig {
        layout,
        urls,
        access: Access { mode, ..Access::default() },
        gateway_api: GatewayApi { enabled, parent_refs: vec![parent()], ..GatewayApi::default() },
        local_vm: LocalVm { enabled: true, ..LocalVm::default() },
        ..InstanceConfig::default()
    };
    MODES.into_iter().flat_map(|mode| [(mode, false), (mode, true)]).map(config).collect()
}

/// The URL in the status of a running Instance with one environment, and what *Connect* opens.
fn opened(kind: &str, has_gui: bool, config: &InstanceConfig) -> (String, Option<Way>) {
    let (image, is_persistent) = match kind {
        "CloudVM" => ("https://images.example.org/noble.img", true),
        "LocalVM" => ("workspace-w/disk", true),
        _ => ("img", false),
    };
    let more = json!({"guiEnabled": has_gui, "persistent": is_persistent, "image": image});
    let mut observed = observed(json!([environment("main", kind, more)]));
    observed.hosts = Hosts::Known(HostKey::parse(&[1; 32]).expect("a key"));
    observed.has_routes = config.gateway_api.enabled;
    let plan = plan(&observed, config, Timestamp::UNIX_EPOCH);
    // An OAuth2 proxy has an Ingress, too.
    let mut exposed = plan.ensure.iter().filter(|desired| !desired.key.name.ends_with("oauth2-proxy"));
    if let Some(exposed) = exposed.find(|desired| ["Ingress", "HTTPRoute"].contains(&desired.kind.kind)) {
        let mut written = exposed.manifest.as_ref().expect("a new object").json().clone();
        written["metadata"]["uid"] = "uid-1".into();
        if config.gateway_api.enabled {
            observed.children.set::<HttpRouteKind>([object(written)]);
        } else {
            observed.children.set::<IngressKind>([object(written)]);
        }
    }
    let mut status = reconciled(&observed, config, Timestamp::UNIX_EPOCH).0.status;
    let main = &mut status.environments[0];
    // The machine runs, and its Service has an address.
    (main.phase, main.ip) = (InstancePhase::Ready, "10.96.3.7".into());
    let url = main.url.clone();
    let instance = edit(&observed.instance, &json!({"status": to_value(&status)}));
    let template = observed.template.as_deref();
    let facts = Facts { instance: &instance, template, has_terminals: true, has_consoles: true };
    (url, facts.connect().and_then(|(_, ways)| ways.connect))
}

/// The URL as the table shows it: with placeholders, and without the login of a proxy of the Instance.
fn shown(url: &str) -> String {
    let url = url.replace("/instance/u1/_oauth2/start?rd=", "");
    let url = url
        .replace("5ngftyjvb3ov2wxpapjdx77luw.", "<label>.")
        .replace("crownlabs.example.com", "<websiteBaseUrl>");
    url.replace("/u1/", "/<uid>/").replace("/main/", "/<environment>/")
}

/// The URL and the word for *Connect* of environments of these types, which neither the access mode nor the exposure
/// changes.
fn columns(kinds: &[&str], has_gui: bool, layout: Layout, urls: Urls) -> String {
    let all = kinds.iter().flat_map(|kind| {
        configurations(layout, urls).into_iter().map(move |config| opened(kind, has_gui, &config))
    });
    let all: BTreeSet<String> = all
        .map(|(url, connect)| {
            let url = if url.is_empty() { "none".to_owned() } else { format!("`{}`", shown(&url)) };
            let connect = match connect {
                Some(Way::Web) => "this URL",
                Some(Way::Console) => "the console",
                Some(Way::Terminal) => "the terminal, and the console beside it",
                None => "nothing",
            };
            format!("{url} | {connect}")
        })
        .collect();
    assert_eq!(all.len(), 1, "{kinds:?} {has_gui} {layout:?} {urls:?}: {all:?}");
    all.into_iter().collect()
}

#[test]
fn the_table_of_the_document_has_the_url_and_the_way_of_each_environment() {
    let layouts = [(Layout::PerEnvironment, "`perEnvironment`"), (Layout::Classic, "`classic`")];
    let hosts = [(Urls::Path, "`path`"), (Urls::Host, "`host`")];
    let mut rows = BTreeSet::new();
    for (kinds, types) in [
        (&MACHINES[..], "`VirtualMachine`, `CloudVM`, `LocalVM`"),
        (&CONTAINERS[..], "`Container`, `Standalone`"),
    ] {
        for ((layout, of_layout), (urls, of_urls)) in
            layouts.into_iter().flat_map(|layout| hosts.map(|urls| (layout, urls)))
        {
            rows.insert(format!(
                "| {types} | yes | {of_layout} | {of_urls} | {} |",
                columns(kinds, true, layout, urls)
            ));
            rows.insert(format!("| {types} | no | any | any | {} |", columns(kinds, false, layout, urls)));
        }
    }
    let is_row =
        |line: &&str| line.starts_with("| `VirtualMachine`, ") || line.starts_with("| `Container`, ");
    let found: BTreeSet<String> = DOCUMENT.lines().filter(is_row).map(str::to_owned).collect();
    assert_eq!(found, rows, "docs/access.md, and the code");
    assert_eq!(rows.len(), 10);
}

#[test]
fn a_proxy_of_the_instance_is_in_front_of_the_page_of_the_site() {
    let with = |mode| {
        let access = Access { mode, ..Access::default() };
        opened("VirtualMachine", true, &InstanceConfig { access, ..InstanceConfig::classic() })
    };
    let (url, connect) = with(AccessMode::PerInstance);
    assert_eq!(url, "https://crownlabs.example.com/instance/u1/_oauth2/start?rd=/instance/u1/");
    assert_eq!(connect, Some(Way::Console));
    assert_eq!(with(AccessMode::Shared).0, "https://crownlabs.example.com/instance/u1/");
}

#[test]
fn uploads_of_any_size_pass_while_they_are_on_and_other_limits_stay() {
    const SIZE: &str = "nginx.ingress.kubernetes.io/proxy-body-size";
    const BUFFERING: &str = "nginx.ingress.kubernetes.io/proxy-request-buffering";
    let config = |large_uploads| InstanceConfig { large_uploads, ..InstanceConfig::default() };
    let written = |observed: &Observed, is_on| {
        let plan = plan(observed, &config(is_on), Timestamp::UNIX_EPOCH);
        let ingress = plan.ensure.iter().find(|desired| desired.kind.kind == "Ingress").expect("an Ingress");
        let annotations = to_value(&ingress.annotations);
        [SIZE, BUFFERING].map(|name| annotations.get(name).cloned())
    };
    for kind in MACHINES.into_iter().take(1).chain(CONTAINERS) {
        let mut observed = observed(json!([environment("main", kind, json!({}))]));
        assert_eq!(written(&observed, false), [None, None], "as the Go operators: {kind}");
        assert_eq!(written(&observed, true), [Some(json!("0")), Some(json!("off"))], "{kind}");
        let with = |size: &str, is_ours: bool| {
            let mut ingress = to_value(&*owned::<IngressKind>("my-lab-main", json!({})));
            ingress["metadata"]["annotations"] = json!({SIZE: size, BUFFERING: "off"});
            if is_ours {
                ingress["metadata"]["annotations"][LARGE_UPLOADS] = json!("true");
            }
            object::<IngressKind>(ingress)
        };
        observed.children.set::<IngressKind>([with("0", true)]);
        assert_eq!(written(&observed, false), [Some(Value::Null), Some(Value::Null)], "they are removed");
        observed.children.set::<IngressKind>([with("8m", true)]);
        assert_eq!(written(&observed, false), [None, Some(Value::Null)], "the limit of an administrator");
        observed.children.set::<IngressKind>([with("0", false)]);
        assert_eq!(written(&observed, false), [None, None], "the same annotations of an administrator");
    }
}
