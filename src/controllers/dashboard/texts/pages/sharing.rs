//! The texts about sharing.

use crate::api::connection::Relation;
use crate::api::openings::Way;
use crate::api::sharing::Access;
use crate::controllers::dashboard::texts::declare::catalogue;
use crate::controllers::dashboard::texts::template::{Key, Table, Template};

impl Key for Access {
    const ALL: &'static [Self] = &[Self::View, Self::Control];
}

impl Key for Relation {
    const ALL: &'static [Self] = &[Self::Peer, Self::Manager, Self::Administrator];
}

impl Key for Way {
    const ALL: &'static [Self] = &[Self::Web, Self::Console, Self::Terminal];
}

catalogue! {
    /// The texts about sharing, on the page of a machine and on the first page.
    pub struct SharingTexts;
    String: heading, hint, nobody, until, with_me, with_me_hint, desktop, no_door;
    Table<Access>: access, mine;
    Table<Relation, Template>: relation;
    Table<Way>: way;
}
