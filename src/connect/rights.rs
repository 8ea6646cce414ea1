//! Whether the account of the kubeconfig may send the requests of the enabled loops.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use kube::Client;
use serde_json::json;

use super::cluster::{post, words};
use super::{Check, RightsOfLoops};
use crate::runtime::plan::KindInfo;

/// The number of concurrent reviews.
const AT_ONCE: usize = 8;
const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const WHAT: &str = "rights";

/// A request to all namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    group: &'static str,
    plural: &'static str,
    subresource: &'static str,
    verb: &'static str,
}

/// Returns a line for each loop with its missing rights.
pub async fn checks(client: &Client, rights: &RightsOfLoops) -> Vec<Check> {
    let loops: Vec<(&str, BTreeSet<Right>)> =
        rights.iter().map(|(name, rights)| (*name, rights.iter().flat_map(flat).collect())).collect();
    let all: BTreeSet<Right> = loops.iter().flat_map(|(_, rights)| rights).copied().collect();
    let reviewed = stream::iter(all).map(|right| async move { (right, review(client, right).await) });
    let reviewed: BTreeMap<Right, Result<bool, String>> = reviewed.buffer_unordered(AT_ONCE).collect().await;
    loops.iter().map(|(name, rights)| check(name, rights, &reviewed)).collect()
}

fn flat<'a>(
    (of, verbs): (&'a (KindInfo, &'static str), &'a BTreeSet<&'static str>),
) -> impl Iterator<Item = Right> + use<'a> {
    let (kind, subresource) = *of;
    verbs.iter().map(move |verb| Right { group: kind.group, plural: kind.plural, subresource, verb })
}

/// Returns the line of a loop.
fn check(name: &str, rights: &BTreeSet<Right>, reviewed: &BTreeMap<Right, Result<bool, String>>) -> Check {
    let mut missing: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for right @ Right { group, plural, subresource, verb } in rights {
        match reviewed.get(right) {
            Some(Ok(true)) | None => {}
            Some(Err(error)) => return Check::failed(WHAT, name, format!("they cannot be read: {error}")),
            Some(Ok(false)) => {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let group = if group.is_empty() { String::new() } else { format!(".{group}") };
                missing.entry(format!("{plural}{group}{slash}{subresource}")).or_default().push(verb);
            }
        }
    }
    if missing.is_empty() {
        return Check::ok(WHAT, format!("all that the loop {name} needs"));
    }
    let missing: Vec<String> =
        missing.iter().map(|(resource, verbs)| format!("{} {resource}", verbs.join(", "))).collect();
    let fault = format!(
        "this account may not {}; grant that with the chart or with manifests/10-rbac.yaml",
        missing.join("; ")
    );
    Check::failed(WHAT, name, fault)
}

/// Reviews whether the account has a right in all namespaces.
async fn review(client: &Client, right: Right) -> Result<bool, String> {
    let Right { group, plural, subresource, verb } = right;
    let attributes = json!({"group": group, "resource": plural, "subresource": subresource, "verb": verb});
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes}
    });
    let answer = post(client, PATH, &review).await.map_err(|error| words(&error))?;
    Ok(answer["status"]["allowed"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_loop_names_the_rights_that_are_missing() {
        let rights = BTreeSet::from([
            Right { group: "", plural: "pods", subresource: "", verb: "list" },
            Right { group: "", plural: "pods", subresource: "", verb: "watch" },
            Right { group: "apps", plural: "deployments", subresource: "scale", verb: "patch" },
        ]);
        let all: BTreeMap<Right, _> = rights.iter().map(|right| (*right, Ok(true))).collect();
        assert_eq!(check("instance", &rights, &all), Check::ok("rights", "all that the loop instance needs"));
        let none = rights.iter().map(|right| (*right, Ok(false))).collect();
        let fault = "this account may not patch deployments.apps/scale; list, watch pods; grant that with the chart or with \
                     manifests/10-rbac.yaml";
        assert_eq!(check("instance", &rights, &none), Check::failed("rights", "instance", fault));
    }
}
