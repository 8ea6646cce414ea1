//! The rights of each loop of the leader and of the webhooks, as the chart grants them: what their stores declare.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use super::tests::build_all;
use super::{LOOPS, RunsIn};
use crate::reference::check_file;
use crate::webhook::setup as webhook;

const HEAD: &str = "\
# Generated from the code by `make generate`; do not edit.
#
# What each loop may do in the whole cluster: `API group/resource: verbs`. The ClusterRole has the sum of those that are
# enabled, so a loop that is off adds nothing. `get` is for objects that a store does not hold: one without our labels that
# has the name of a child, or one that is read again before a final refusal. `delete` of children that are never deleted is
# for one that has lost its owner reference: the admission plugin OwnerReferencesPermissionEnforcement demands it of
# whoever sets that again. `update` of finalizers is what it demands for blockOwnerDeletion. Where a loop declares its
# stores (src/controllers), the reason for any other right is said. Rights for objects of certain names, or in one
# namespace, are in templates/rbac.yaml.

# Any loop of the leader. `patch` counts an event that comes again.
common:
  events.k8s.io/events: create patch
";

/// The verbs, in their order.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

#[test]
fn the_rights_of_the_chart_are_up_to_date() {
    let mut factory = build_all();
    webhook::stores(&mut factory);
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
