# Filled by the client: install rules and the exported package.
