//! The page of a link that starts a Template, such as `/new/netlab/desktop` on the page of a course. It asks before it
//! creates a machine, leads to the machine if there is one already, and offers to join the course.

pub mod model;
#[cfg(test)]
mod tests;
pub mod view;

use axum::extract::Path;
use axum::response::Response;

use self::model::{New, is_enrolled};
use super::http::context::RETRY_LATER;
use super::http::response::{see_other, with_refresh};
use super::page::PageRequest;
use super::paths;
use super::student::Student;
use super::ui::links::of_machine;
use super::ui::state::{State, state};

/// Serves the page.
pub async fn page(request: PageRequest, Path((course, template)): Path<(String, String)>) -> Response {
    let (user, context) = (&request.user, &request.user.context);
    let Some((course, template)) = paths::new(&course, &template) else {
        return user.answer(context.state(&user.user.name, &State::NoTemplate));
    };
    let read = request.read(async |reads| {
        let own = Box::pin(reads.own()).await?;
        // Users who are not enrolled see the course, to join it.
        if is_enrolled(&own.known.tenant, course) { Ok(own) } else { Box::pin(reads.courses()).await }
    });
    let own = match read.await {
        Ok(own) => own,
        Err(error) => return request.failed(&error),
    };
    let settings = &request.app.settings;
    let student = Student::new(&own.known, settings, &own.rules, None);
    if let Some(lacks) = own.lacks() {
        return request.answer(&own, settings, None, |view, _| state(view, &lacks));
    }
    if let Some(machine) = model::existing(&student, course, template) {
        let path = of_machine(paths::MACHINE, machine.namespace(), machine.name());
        return user.answer(see_other(&path));
    }
    match New::of(&context.view(&context.path, &[]), &student, course, template) {
        Ok(new) => request.answer(&own, settings, None, |view, _| view::new(view, &new)),
        Err(of) => {
            let answer = context.state(&user.user.name, &of);
            let is_waiting = of == State::CourseWaits && !context.is_by_script;
            let waits = |answer| with_refresh(answer, context.retry_in(RETRY_LATER), &context.path);
            user.answer(if is_waiting { waits(answer) } else { answer })
        }
    }
}
