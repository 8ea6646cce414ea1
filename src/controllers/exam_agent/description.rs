//! The description of the interface, as OpenAPI 3.1 has it, made from the types.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::body::WantedInstance;
use super::view::{ErrorView, InstanceView, TemplateView};

/// The pattern of the names of objects.
const NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// The description of the interface below this path.
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
            "description": "Exam servers create, watch and delete Instances, and browsers are led to them. Paths may also be \
                written in the singular, and with or without a slash at the end.",
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

/// An answer that is a page for browsers and JSON for others.
fn either(description: &str, schema: &Value) -> Value {
    let page = json!({"schema": {"type": "string"}});
    json!({"description": description, "content": {"application/json": {"schema": schema}, "text/html": page}})
}

fn with_retry_after(mut answer: Value) -> Value {
    answer["headers"] = json!({
        "Retry-After": {"description": "Seconds after which it may be tried again.", "schema": {"type": "integer", "minimum": 1}},
    });
    answer
}

fn paths(generator: &mut SchemaGenerator) -> Value {
    let too_many = with_retry_after(text("There are too many requests."));
    let forbidden = text(
        "The client may not, or the Instance belongs to another Tenant, or the Template is not for exams.",
    );
    let health = json!({"get": {
        "operationId": "health", "summary": "Whether the server runs",
        "responses": {"200": text("It runs.")},
    }, "servers": [{"url": "/"}]});
    let templates = json!(generator.subschema_for::<Vec<TemplateView>>());
    let templates = json!({"get": {
        "operationId": "listTemplates", "summary": "The Templates for exams",
        "responses": {
            "200": as_json("The Templates.", &templates), "429": too_many, "500": text("The API server has not answered."),
        },
    }});
    let instances = json!(generator.subschema_for::<Vec<InstanceView>>());
    let labels = json!({
        "name": "labels", "in": "query", "style": "form", "explode": true,
        "description": "Labels that the Instances have; a label without a value has the value `true`.",
        "schema": {"type": "object", "additionalProperties": {"type": "string"}},
    });
    let list = json!({"get": {
        "operationId": "listInstances", "summary": "The Instances, for clients that may do everything",
        "parameters": [labels],
        "responses": {
            "200": as_json("The Instances.", &instances), "400": text("A label is not valid."), "403": forbidden,
            "429": too_many, "500": text("The API server has not answered."),
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
    let get = json!({
        "operationId": "getInstance",
        "summary": "An Instance, for everybody; a browser is led to it, or gets a page that loads itself again until it is ready",
        "responses": {
            "200": as_json("The Instance.", &instance),
            "201": {"description": "It is not ready yet.", "content": {"text/html": {"schema": {"type": "string"}}}},
            "302": text("It is ready: the URL of its desktop."),
            "400": text("The name is not valid."),
            "404": either("There is none.", &error),
            "410": either("It is not running.", &error),
            "429": too_many,
            "500": either("It has failed, or the API server has not answered.", &error),
        },
    });
    let put = json!({
        "operationId": "putInstance",
        "summary": "Creates an Instance, or replaces its spec, for clients that may do everything",
        "requestBody": {"required": true, "content": {"application/json": {"schema": wanted}}},
        "responses": {
            "200": as_json("It is there, changed or not.", &instance),
            "201": as_json("It was created.", &instance),
            "400": text("The name or the body is not valid."),
            "403": forbidden,
            "409": text("The Instance is being deleted, or others change it all the time."),
            "413": text("The body is too long."),
            "429": too_many,
            "500": text("The API server has refused it, or has not answered."),
        },
    });
    let delete = json!({
        "operationId": "deleteInstance", "summary": "Deletes an Instance, for clients that may do everything",
        "responses": {
            "200": {"description": "It is being deleted."},
            "400": text("The name is not valid."),
            "403": forbidden,
            "404": text("There is none."),
            "429": too_many,
            "500": text("The API server has refused it, or has not answered."),
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
