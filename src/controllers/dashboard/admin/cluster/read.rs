//! The reads of the page of the cluster.

use futures::join;

use super::Cluster;
use super::nodes::{Asked, Capacity, Nodes, Requested};
use crate::api::image_list::{ImageList, ImageListKind};
use crate::controllers::dashboard::admin::read::part;
use crate::controllers::dashboard::student::read::{Own, Reads};
use crate::controllers::dashboard::ui::links::encoded;
use crate::kinds::{Node, NodeKind, PodKind};
use crate::runtime::error::ApiError;
use crate::runtime::plan::KindInfo;

/// The maximum number of nodes, and of image lists, that are read.
const MOST: usize = 500;
/// The number of pods in a page of their list.
const PAGE: usize = 500;
/// The maximum number of pods whose requests are added up.
const MOST_PODS: usize = 10_000;
/// The pods that use resources.
const ACTIVE: &str = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

impl Reads<'_> {
    /// Reads the nodes and the image lists. The nodes are the main part: a user who may not list them may not see the page.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn cluster(&self, namespace: &str) -> Result<(Own, Cluster), ApiError> {
        let (own, nodes, requested, images) = join!(
            self.administrator(namespace),
            self.one_page::<Node>(KindInfo::of::<NodeKind>(), "", "", MOST),
            self.requested(),
            self.one_page::<ImageList>(KindInfo::of::<ImageListKind>(), "", "", MOST),
        );
        let (own, nodes, requested) = (own?, nodes?, part(requested)?);
        let images = part(images)?.map(|page| page.objects);
        Ok((own, Cluster { nodes: Nodes::of(&nodes.objects, requested), images }))
    }

    /// Reads the capacity of the nodes.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn capacity(&self) -> Result<Capacity, ApiError> {
        let nodes = self.one_page::<Node>(KindInfo::of::<NodeKind>(), "", "", MOST).await?;
        Ok(Nodes::of(&nodes.objects, Err(String::new())).total())
    }

    /// Adds up the requests of the pods of each node.
    async fn requested(&self) -> Result<Requested, ApiError> {
        let (mut requested, mut next) = (Requested::default(), String::new());
        loop {
            let more = if next.is_empty() { String::new() } else { format!("&continue={}", encoded(&next)) };
            let query = format!("{ACTIVE}{more}");
            let page = self.one_page::<Asked>(KindInfo::of::<PodKind>(), "", &query, PAGE).await?;
            page.objects.iter().for_each(|pod| requested.add(pod));
            next = page.next;
            if next.is_empty() {
                return Ok(requested);
            }
            if requested.pods >= MOST_PODS {
                return Err(ApiError::TooLong(format!("there are more than {MOST_PODS} pods")));
            }
        }
    }
}
