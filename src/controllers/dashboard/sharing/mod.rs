//! Sharing of machines: the section on the page of a machine, where its owner shares it with people of the course and sees
//! who is connected, and the machines of others on the first page.
//!
//! The webhook decides who may be in the annotation, and the servers of terminals and desktops decide at each opening and
//! all the time whether a peer may still be connected. These pages only show and change the annotation.

pub mod actions;
pub mod model;
pub mod stores;
pub mod view;
pub mod with_me;
