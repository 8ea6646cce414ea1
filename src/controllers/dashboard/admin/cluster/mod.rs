//! The page of the cluster: the nodes with their capacity, and the image lists.

pub mod nodes;
mod read;
pub mod view;

use axum::response::Response;

use self::nodes::Nodes;
use super::read::Part;
use crate::api::image_list::ImageList;
use crate::controllers::dashboard::page::PageRequest;

/// The page.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The nodes.
    pub nodes: Nodes,
    /// The image lists.
    pub images: Part<Vec<ImageList>>,
}

/// Serves the page.
pub async fn page(request: PageRequest) -> Result<Response, Response> {
    let settings = &request.app.settings;
    let read = request.read(async |reads| Box::pin(reads.cluster(&settings.namespace)).await).await;
    let (own, cluster) = read.map_err(|error| request.failed(&error))?;
    Ok(request.answer(&own, settings, None, |view, _| view::cluster(view, &cluster)))
}
