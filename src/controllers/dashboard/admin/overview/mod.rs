//! The overview: numbers, capacity, the state of each loop, recent problems by cause, announcements for everyone.

pub mod loops;
pub mod problems;
mod read;
pub mod view;

use axum::response::Response;

use self::loops::Loops;
use self::problems::Problems;
use super::cluster::nodes::Capacity;
use super::frame::Administrator;
use super::read::{Count, Part};
use crate::controllers::dashboard::announcements::model::sorted;
use crate::controllers::dashboard::page::PageRequest;

/// The overview.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The number of courses.
    pub courses: Part<Count>,
    /// The number of people.
    pub people: Count,
    /// The capacity of the nodes.
    pub capacity: Part<Capacity>,
    /// The loops.
    pub loops: Loops,
    /// The problems of machines.
    pub problems: Part<Problems>,
}

/// Serves the page.
pub async fn page(request: PageRequest) -> Result<Response, Response> {
    let app = &request.app;
    let (settings, now) = (&app.settings, request.user.context.now);
    let read = request.read(async |reads| Box::pin(reads.overview(&settings.namespace, now)).await).await;
    let (own, overview) = read.map_err(|error| request.failed(&error))?;
    let announcements = sorted(app.announced.for_everyone.objects());
    Ok(request.answer(&own, settings, None, |view, student| {
        view::overview(view, &Administrator::of(student), &overview, &announcements)
    }))
}
