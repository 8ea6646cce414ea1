//! The page of a machine.

pub mod actions;
pub mod buttons;
pub mod card;
mod connect;
mod forms;
pub mod left;
pub mod model;
mod ports;
mod technical;
pub mod view;

use axum::extract::Path;
use axum::response::Response;

use self::model::Machine;
use super::history::model::History;
use super::page::PageRequest;
use super::paths;
use super::student::Settings;
use super::student::read::OneMachine;
use super::ui::state::State;

/// Serves the page.
pub async fn page(request: PageRequest, Path((namespace, name)): Path<(String, String)>) -> Response {
    let Some(key) = paths::machine(&namespace, &name) else {
        return request.user.context.state(&request.user.user.name, &State::NotFound);
    };
    let OneMachine { instance, is_template_gone, own, is_own, warnings, recorded, events } =
        match request.read(async |reads| reads.machine(&key).await.map(Box::new)).await {
            Ok(machine) => *machine,
            Err(error) => return request.failed(&error),
        };
    // Too little is known about the quota of another user to apply the rule.
    let is_rule_enforced = request.app.settings.is_rule_enforced && is_own;
    let settings = Settings { is_rule_enforced, ..request.app.settings.clone() };
    request.answer(&own, &settings, None, |view, student| {
        let conditions = &instance.status.conditions;
        let history = History::of(&recorded, conditions, &[], events, view.now);
        let mut shown = Machine::of(view, student, &instance, is_template_gone, warnings, None);
        if let Some(sharing) = &mut shown.sharing {
            sharing.connections = request.app.shared.connections(&key, view.now);
        }
        view::machine(view, &Machine { history, ..shown })
    })
}
