//! What a replica says while it does not lead.

use super::{await_line, logged};
use crate::daemon::{Daemon, Options};
use crate::lab::Lab;
use cluster::config::only;

#[test]
fn a_replica_waits_to_lead_until_there_is_a_lease_and_then_names_the_leader() {
    let (lab, name) = (Lab::shared(), "messages-election");
    let config = format!("leaderElection: {{name: {name}}}\n{}", only(&[("template", "")]));
    let admin = lab.admin();
    let options = Options { kubeconfig: &admin, selector: name, config: &config };
    let first = Daemon::spawn(&options);
    let waiting = format!("waiting to lead: the Lease crownlabs-system/{name} does not exist yet");
    await_line(&first, &["[+] template: standby: ", &waiting]);
    assert!(!first.ready().1.contains("leads"), "{}", first.ready().1);
    first.wait_for("leadership", |daemon| daemon.ready().1.contains("[+] template: ready"));
    let lease = lab.get("lease", "crownlabs-system", name).expect("the Lease");
    let holder = lease["spec"]["holderIdentity"].as_str().expect("a holder");
    let second = Daemon::spawn(&options);
    await_line(&second, &[&format!("[+] template: standby: the replica {holder} leads")]);
    drop((first, second));
    lab.delete("lease", "crownlabs-system", &[name]);
}

#[test]
fn a_lease_that_may_not_be_read_is_reported_once_with_the_role_that_allows_it() {
    let (lab, name) = (Lab::shared(), "messages-refused");
    let config = format!("leaderElection: {{name: {name}}}\n{}", only(&[("template", "")]));
    // The account may use only the Lease of the default name.
    let kubeconfig = lab.service_account();
    let daemon = Daemon::spawn(&Options { kubeconfig: &kubeconfig, selector: name, config: &config });
    let refused = format!(
        "this replica cannot lead, because the API server refuses access to the Lease crownlabs-system/{name}: "
    );
    let remedy = "create the Role crownlabs-leader-election and its RoleBinding again";
    await_line(&daemon, &["[!] Lease: ", &refused, remedy]);
    await_line(&daemon, &["WARN", &refused, remedy]);
    await_line(&daemon, &["[+] template: standby: waiting to lead"]);
    assert_eq!(logged(&daemon, "WARN", &refused), 1, "{}", daemon.log());
}
