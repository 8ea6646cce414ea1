//! The texts of the pages of administrators.

use std::collections::BTreeMap;

use crate::controllers::dashboard::admin::overview::loops::LoopState;
use crate::controllers::dashboard::texts::declare::catalogue;
use crate::controllers::dashboard::texts::template::{Plural, Table, Template};

catalogue! {
    /// The texts of the pages of administrators.
    pub struct AdminTexts;
    String:
        heading, tabs, overview, cluster, not_read, numbers, capacity, problems, first_machines, can_act,
        loops, loops_hint, loop_name, state, message, pods, leader, versions, works, nodes, node, others,
        node_open, node_cordoned, node_not_ready, images, no_images, stale, no_courses, new_course,
        new_course_hint, first_page, next_page, enrolment, quota_each, terminating, to_course, edit_hint, lost,
        lost_people, lost_templates, lost_volumes, lost_machines, search_people, search_hint, refine,
        last_login, never, disabled, namespace, keep_hint, no_enrolments, role_user, role_manager,
        role_candidate, failing, quota, quota_own, quota_of_courses, personal_hint, no_personal;
    Template: problems_of, nodes_of, free;
    Plural: images_of, found;
    Table<LoopState>: loop_state;
    BTreeMap<String, String>: roles;
}
