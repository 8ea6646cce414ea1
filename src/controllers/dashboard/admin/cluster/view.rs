//! The HTML of the page of the cluster.

use maud::{Markup, html};

use super::Cluster;
use super::nodes::{Capacity, Room, Row, Standing};
use crate::api::condition::STALE;
use crate::api::image_list::ImageList;
use crate::api::shown::{escaped, message, shown};
use crate::controllers::dashboard::admin::frame::{Tab, frame, group, unread};
use crate::controllers::dashboard::ui::time;
use crate::controllers::dashboard::ui::view::View;

/// Renders the page.
pub fn cluster(view: &View<'_>, cluster: &Cluster) -> Markup {
    let texts = &view.texts().admin;
    let content = html! {
        section aria-labelledby="nodes" {
            h2 #nodes { (texts.nodes) }
            p { (capacity(view, &cluster.nodes.total())) }
            @if !cluster.nodes.unknown.is_empty() { (unread(view, &cluster.nodes.unknown)) }
            (group(&texts.nodes, &nodes(view, &cluster.nodes.rows)))
        }
        section aria-labelledby="images" {
            h2 #images { (texts.images) }
            @match &cluster.images {
                Err(reason) => { (unread(view, reason)) },
                Ok(all) if all.is_empty() => { p.empty { (texts.no_images) } },
                Ok(all) => { ul.rows { @for list in all { li { (images(view, list)) } } } },
            }
        }
    };
    frame(view, Tab::Cluster, "", &content)
}

/// Returns the capacity in words.
pub fn capacity(view: &View<'_>, capacity: &Capacity) -> String {
    let texts = &view.texts().admin;
    let (nodes, open) = (capacity.nodes.to_string(), capacity.open.to_string());
    let of_nodes = texts.nodes_of.fill(&[("open", &open), ("count", &nodes)]);
    let rooms = capacity.rooms.iter().map(|room| words(view, room, true));
    escaped(&std::iter::once(of_nodes).chain(rooms).collect::<Vec<_>>().join("; ")).into_owned()
}

/// Returns an amount, with its free part: `64 cores, 12 free`. `is_named`: with the name of the resource.
fn words(view: &View<'_>, room: &Room, is_named: bool) -> String {
    let texts = view.texts();
    let amount = texts.quantity(&room.measure, &room.allocatable);
    let amount = if is_named { texts.amount(&room.measure, &amount) } else { amount };
    match &room.free {
        None => amount,
        Some(free) => {
            let free = texts.quantity(&room.measure, free);
            texts.admin.free.fill(&[("amount", &amount), ("free", &free)])
        }
    }
}

fn nodes(view: &View<'_>, rows: &[Row]) -> Markup {
    let texts = view.texts();
    html! {
        table {
            thead {
                tr {
                    th scope="col" { (texts.admin.node) }
                    th scope="col" { (texts.admin.state) }
                    th scope="col" { (texts.measure_cpu) }
                    th scope="col" { (texts.measure_memory) }
                    th scope="col" { (texts.admin.others) }
                }
            }
            tbody { @for row in rows { (node(view, row)) } }
        }
    }
}

fn node(view: &View<'_>, row: &Row) -> Markup {
    let texts = &view.texts().admin;
    let (mark, word) = match row.standing {
        Standing::Open => ("good", &texts.node_open),
        Standing::Cordoned => ("busy", &texts.node_cordoned),
        Standing::NotReady => ("bad", &texts.node_not_ready),
    };
    let (plain, others) = row.rooms.split_at(row.rooms.len().min(2));
    let others = others.iter().map(|room| words(view, room, true)).collect::<Vec<_>>().join("; ");
    html! {
        tr {
            th scope="row" { (shown(&row.name)) }
            td { span.badge.(mark) { (word) } }
            @for room in plain { td { (words(view, room, false)) } }
            @for _ in plain.len()..2 { td {} }
            td { (escaped(&others)) }
        }
    }
}

/// An image list: its registry, its size, and since when it is stale.
fn images(view: &View<'_>, list: &ImageList) -> Markup {
    let texts = &view.texts().admin;
    let count = list.spec.images.len().to_string();
    let stale = list.status.conditions.iter().find(|of| of.type_ == STALE && of.status == "True");
    html! {
        p {
            strong { (shown(list.name())) } " "
            (shown(&list.spec.registry_name)) " " (shown(&list.spec.project_base_name)) ": "
            (texts.images_of.of(&count))
        }
        @if let Some(stale) = stale {
            p.error {
                (texts.stale) " " (time::ago(view, stale.last_transition_time.0)) ": " (message(&stale.message))
            }
        }
    }
}
