package trigger

import (
	"bytes"
	"encoding/json"
)

// schemaOf is what the schema says of an object.
func (o *object[T]) schemaOf() schema {
	props := schema{}
	var required []string
	for _, k := range o.keys {
		p := schema{}
		for name, v := range k.schema() {
			p[name] = v
		}
		if k.doc != "" {
			p["description"] = k.doc
		}
		props[k.name] = p
		if k.required {
			required = append(required, k.name)
		}
	}
	s := schema{"type": "object", "properties": props, "additionalProperties": false}
	if required != nil {
		s["required"] = required
	}
	for name, v := range o.rest {
		s[name] = v
	}
	return s
}

// Schema returns the JSON Schema (draft 2020-12) of watch files. It is made from the tables that the parser reads by. What
// it can not say: bounds of durations, values that must fit each other, names that must differ, how deep conditions go.
func Schema() []byte {
	s := file.schemaOf()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "What braid watch watches"
	s["$defs"] = schema{"condition": memberPart.schemaOf()}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		panic(err) // maps of strings, numbers and the like
	}
	return out.Bytes()
}
