//! The reads of the overview. They run at the same time, and a part that the user may not read says so.

use std::time::Duration;

use futures::future::join_all;
use futures::join;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::timeout;

use super::Overview;
use super::loops::{Loops, NotRead};
use super::problems::Problems;
use crate::api::Instance;
use crate::api::instance::InstanceKind;
use crate::api::tenant::TenantKind;
use crate::api::workspace::WorkspaceKind;
use crate::controllers::dashboard::admin::read::{Part, part};
use crate::controllers::dashboard::live::broadcast::Topic;
use crate::controllers::dashboard::student::read::{Own, Reads};
use crate::controllers::dashboard::ui::links::encoded;
use crate::kinds::PodKind;
use crate::runtime::ObjectKey;
use crate::runtime::client::Page;
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;
use crate::runtime::readiness::pods::{self, DaemonPod, PART_OF};
use crate::runtime::readiness::state::{PATH, ReplicaState};

/// The kind of Leases.
const LEASES: KindInfo =
    KindInfo { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases" };
/// The maximum number of Leases, and of pods, of an installation that are read.
const MOST_PODS: usize = 50;
/// The time limit for the state of a pod, which may be on a node that does not respond.
const POD: Duration = Duration::from_secs(3);
/// The number of machines in a page of their list.
const PAGE: usize = 500;
/// The maximum number of machines whose problems are read.
const MOST_MACHINES: usize = 2_000;

impl Reads<'_> {
    /// Reads the overview. The people are its main part: a user who may not list Tenants may not see the page.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn overview(&self, namespace: &str, now: Timestamp) -> Result<(Own, Overview), ApiError> {
        let (own, people, courses, capacity, loops, problems) = join!(
            self.administrator(namespace),
            self.count_all(KindInfo::of::<TenantKind>()),
            self.count_all(KindInfo::of::<WorkspaceKind>()),
            self.capacity(),
            self.loops(namespace, now),
            self.problems(now),
        );
        let (mut own, people, loops) = (own?, people?, loops?);
        own.topics.push(Topic::ForEveryone);
        let (courses, capacity, problems) = (part(courses)?, part(capacity)?, part(problems)?);
        Ok((own, Overview { courses, people, capacity, loops, problems }))
    }

    /// Reads the states of the loops, as `crownlabs status` does: the health server of each pod has a page with its
    /// loops, which the API server's proxy returns to a user with the right `get` for `pods/proxy`.
    async fn loops(&self, namespace: &str, now: Timestamp) -> Result<Loops, ApiError> {
        let pods = KindInfo::of::<PodKind>();
        let (leases, pods) = join!(
            self.one_page::<Value>(LEASES, namespace, "", MOST_PODS),
            self.one_page::<Value>(pods, namespace, PART_OF, MOST_PODS),
        );
        let (leases, pods) = (part(leases)?, part(pods)?);
        let mut not_read = Vec::new();
        let mut found = |what: &str, part: Part<Page<Value>>| {
            let (objects, reason) = match part {
                Ok(page) if page.next.is_empty() => return page.objects,
                Ok(page) => (page.objects, format!("only the first {MOST_PODS} were read")),
                Err(reason) => (Vec::new(), reason),
            };
            not_read.push(NotRead { what: what.to_owned(), reason });
            objects
        };
        let leases: Vec<_> = found("leases", leases).iter().filter_map(pods::lease).collect();
        let mut pods: Vec<DaemonPod> = found("pods", pods).iter().filter_map(pods::pod).collect();
        for pod in &mut pods {
            pod.leads = leases.iter().any(|lease| lease.pod() == pod.name && lease.is_held(now));
        }
        // The account that impersonates users may not reach pods.
        if self.users.are_impersonated() {
            let reason = "this needs identity: token; crownlabs status shows it".to_owned();
            not_read.push(NotRead { what: "pods/proxy".to_owned(), reason });
            return Ok(Loops::of(&pods, not_read));
        }
        let states = join_all(pods.iter().map(|pod| self.state(pod))).await;
        for (pod, state) in pods.iter_mut().zip(states) {
            match state {
                Ok(state) => pod.state = Some(state),
                Err(reason) => not_read.push(NotRead { what: pod.name.clone(), reason }),
            }
        }
        Ok(Loops::of(&pods, not_read))
    }

    /// Reads the state of a pod.
    async fn state(&self, pod: &DaemonPod) -> Part<ReplicaState> {
        let Some(port) = pod.port else { return Err("the pod has no port with the name health".to_owned()) };
        let key = ObjectKey::new(pod.namespace.as_str(), pod.name.as_str());
        let state = self.users.client.pod_page(&self.user.credential, &key, port, PATH);
        match timeout(POD, Box::pin(state)).await {
            Ok(state) => state.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} s", POD.as_secs())),
        }
    }

    /// Reads the problems of the first machines of the cluster.
    async fn problems(&self, now: Timestamp) -> Result<Problems, ApiError> {
        let (mut problems, mut next) = (Problems::default(), String::new());
        loop {
            let query = if next.is_empty() { String::new() } else { format!("continue={}", encoded(&next)) };
            let page = self.one_page::<Instance>(KindInfo::of::<InstanceKind>(), "", &query, PAGE).await?;
            page.objects.iter().for_each(|instance| problems.add(instance, now));
            next = page.next;
            if next.is_empty() || problems.read >= MOST_MACHINES {
                problems.is_whole = next.is_empty();
                return Ok(problems);
            }
        }
    }
}
