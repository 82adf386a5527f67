// The interface, described and to be tried, by Swagger UI from this server's own files.
window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#interface",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: -1,
  validatorUrl: null, // else it asks a server elsewhere
  persistAuthorization: false,
  tryItOutEnabled: false,
});
