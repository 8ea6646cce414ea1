//! The rights of each leader loop and of the webhooks, as the chart grants them: the rights that their stores declare.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use super::tests::{build_all, everything};
use super::{LOOPS, RunsIn};
use crate::config::Reader;
use crate::reference::check_file;
use crate::webhook::setup as webhook;

const HEAD: &str = "\
# Generated from the code by `make generate`; do not edit.
#
# The rights of each loop in the whole cluster: `API group/resource: verbs`. The ClusterRole has the rights of all enabled
# loops, so a loop that is off adds none. `get` is for objects that a store does not hold: an object without our labels
# that has the name of a child, or an object that is read again before a final refusal. `delete` of children that are
# never deleted is for children that have lost their owner reference: the admission plugin
# OwnerReferencesPermissionEnforcement requires this right to set the reference again. For blockOwnerDeletion, it requires
# `update` of finalizers. The reason for any other right is stated where a loop declares its stores (src/controllers).
# Rights for objects of certain names, or in one namespace, are in templates/rbac.yaml.

# All leader loops. `patch` increments the count of a repeated event.
common:
  events.k8s.io/events: create patch
";

/// The verbs, in display order.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

#[test]
fn the_rights_of_the_chart_are_up_to_date() {
    let mut factory = build_all();
    webhook::stores(&mut factory, Reader::new(&everything()).requirements());
    let loops = LOOPS.iter().filter(|entry| entry.runs_in == RunsIn::Leader).map(|entry| entry.name);
    let mut page = HEAD.to_owned();
    for name in loops.chain([webhook::NAME]) {
        write!(page, "\n{name}:\n").expect("a line");
        let mut lines: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for ((kind, subresource), verbs) in &factory.rights[name] {
            let slash = if subresource.is_empty() { "" } else { "/" };
            let resource = format!("{}/{}{slash}{subresource}", kind.group, kind.plural);
            lines.entry(resource).or_default().extend(verbs);
        }
        for (resource, verbs) in lines {
            assert!(verbs.iter().all(|verb| VERBS.contains(verb)), "{name}: {resource}: {verbs:?}");
            let ordered = VERBS.into_iter().filter(|verb| verbs.contains(verb)).collect::<Vec<_>>();
            writeln!(page, "  {resource}: {}", ordered.join(" ")).expect("a line");
        }
    }
    check_file(Path::new("manifests/chart/files/rights.yaml"), &page);
}
