//! The OpenAPI 3.1 description of the interface, generated from the types.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::body::{NAME, WantedInstance, label_key, label_value};
use super::token;
use super::view::{ErrorView, InstanceView, TemplateView};

/// The description of the interface below this base path.
pub fn description(base: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut generator = settings.with_transform(RecursiveTransform(tidy)).into_generator();
    let paths = paths(&mut generator);
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "CrownLabs exam agent",
            "description": "Exam servers create, watch and delete Instances, and browsers are redirected to them. Paths may also be \
                written in the singular, and the paths of the two lists with or without a trailing slash.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "servers": [{"url": base}],
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// Joins the lines of descriptions.
fn tidy(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}

fn text(description: &str) -> Value {
    json!({"description": description, "content": {"text/plain": {"schema": {"type": "string"}}}})
}

fn as_json(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

/// A response that is a page for browsers and JSON for other clients.
fn either(description: &str, schema: &Value) -> Value {
    let page = json!({"schema": {"type": "string"}});
    json!({"description": description, "content": {"application/json": {"schema": schema}, "text/html": page}})
}

fn with_retry_after(mut answer: Value) -> Value {
    answer["headers"] = json!({
        "Retry-After": {"description": "Seconds to wait before the next attempt.", "schema": {"type": "integer", "minimum": 1}},
    });
    answer
}

fn paths(generator: &mut SchemaGenerator) -> Value {
    let too_many = with_retry_after(text("There are too many requests."));
    let forbidden = text(
        "The client does not have the right, the Instance belongs to another Tenant, or the Template is not for exams.",
    );
    let health = json!({"get": {
        "operationId": "health", "summary": "The health of the server",
        "responses": {"200": text("The server is running.")},
    }, "servers": [{"url": "/"}]});
    let templates = json!(generator.subschema_for::<Vec<TemplateView>>());
    let templates = json!({"get": {
        "operationId": "listTemplates", "summary": "The Templates for exams",
        "responses": {
            "200": as_json("The Templates.", &templates), "429": too_many, "500": text("The API server did not answer."),
        },
    }});
    let instances = json!(generator.subschema_for::<Vec<InstanceView>>());
    let labels = json!({
        "name": "labels", "in": "query", "style": "form", "explode": true,
        "description": "Labels that the Instances have; a label without a value has the value `true`.",
        "schema": {"type": "object", "propertyNames": label_key(), "additionalProperties": label_value()},
    });
    let list = json!({"get": {
        "operationId": "listInstances", "summary": "The Instances, for clients with full access",
        "parameters": [labels],
        "responses": {
            "200": as_json("The Instances.", &instances), "400": text("A label is not valid."), "403": forbidden,
            "429": too_many, "500": text("The API server did not answer."),
        },
    }});
    json!({
        "/healthz": health,
        "/templates/": templates,
        "/instances/": list,
        "/instances/{id}": instance(generator, &too_many, &forbidden),
        "/openapi.json": {"get": {
            "operationId": "describe", "summary": "This description",
            "responses": {"200": as_json("The description.", &json!({"type": "object"}))},
        }},
    })
}

fn instance(generator: &mut SchemaGenerator, too_many: &Value, forbidden: &Value) -> Value {
    let instance = json!(generator.subschema_for::<InstanceView>());
    let error = json!(generator.subschema_for::<ErrorView>());
    let wanted = json!(generator.subschema_for::<WantedInstance>());
    let name = json!({
        "name": "id", "in": "path", "required": true, "description": "The name of the Instance.",
        "schema": {"type": "string", "pattern": NAME, "minLength": 1, "maxLength": 253},
    });
    let token = json!({
        "name": token::PARAMETER, "in": "query", "schema": {"type": "string"},
        "description": "The token of the Instance, for a browser, if the agent requires tokens.",
    });
    let get = json!({
        "operationId": "getInstance",
        "parameters": [token],
        "summary": "An Instance, for all clients; a browser is redirected to it, or gets a page that reloads until it is ready",
        "responses": {
            "200": as_json("The Instance.", &instance),
            "201": {"description": "The Instance is not ready yet.", "content": {"text/html": {"schema": {"type": "string"}}}},
            "302": text("The Instance is ready: the URL of its desktop."),
            "400": text("The name is not valid."),
            "403": {
                "description": "The Instance is ready, but the browser has no token of it.",
                "content": {"text/html": {"schema": {"type": "string"}}},
            },
            "404": either("The Instance does not exist.", &error),
            "410": either("The Instance is not running.", &error),
            "429": too_many,
            "500": either("The Instance has failed, or the API server did not answer.", &error),
        },
    });
    let mut unsupported = text("The Content-Type of the body is not JSON.");
    unsupported["headers"] =
        json!({"Accept": {"description": "The type to send.", "schema": {"type": "string"}}});
    let put = json!({
        "operationId": "putInstance",
        "summary": "Creates an Instance, or replaces its spec, for clients with full access",
        "requestBody": {"required": true, "content": {"application/json": {"schema": wanted}}},
        "responses": {
            "200": as_json("The Instance exists, and was changed if necessary.", &instance),
            "201": as_json("The Instance was created.", &instance),
            "400": text("The name is not valid, or the body is not JSON."),
            "403": forbidden,
            "409": text("The Instance is being deleted, or another client keeps changing it."),
            "413": text("The body is too large."),
            "415": unsupported,
            "422": text("The body does not describe a valid Instance; the response explains why."),
            "429": too_many,
            "500": text("The API server rejected the request, or did not answer."),
        },
    });
    let delete = json!({
        "operationId": "deleteInstance", "summary": "Deletes an Instance, for clients with full access",
        "responses": {
            "200": {"description": "The Instance is being deleted."},
            "400": text("The name is not valid."),
            "403": forbidden,
            "404": text("The Instance does not exist."),
            "429": too_many,
            "500": text("The API server rejected the request, or did not answer."),
        },
    });
    json!({"parameters": [name], "get": get, "put": put, "delete": delete})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;

    #[test]
    fn the_description_in_the_reference_is_up_to_date() {
        reference::check("exam-agent.openapi.json", &format!("{:#}\n", description("/api")));
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let described = description("/exams/v1");
        assert_eq!(described["servers"][0]["url"], "/exams/v1");
        let text = described.to_string();
        let names: Vec<&str> = text
            .split("\"$ref\":\"#/components/schemas/")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            assert!(described["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
