//! The pages of administrators. As on every page, the token of the user decides what can be read and changed.
//!
//! | folder | content |
//! |---|---|
//! | `overview/` | the numbers of courses and people, the capacity, the state of each loop, recent problems by cause, announcements for everyone |
//! | `courses/` | the courses: create, edit, delete |
//! | `people/` | the people: search, quota, personal workspace, enrolments |
//! | `cluster/` | the nodes with their capacity, and the image lists |
//! | `frame.rs` | the heading and the tabs |
//! | `listed.rs`, `quota.rs` | the pages of long lists, and the fields of a quota |
//! | `read.rs` | the reads that the pages share |

pub mod cluster;
pub mod courses;
pub mod frame;
mod listed;
pub mod overview;
pub mod people;
mod quota;
pub mod read;
