package result

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// fields collects the JSON names of a type.
func fields(ty reflect.Type, out map[string]bool) {
	switch ty.Kind() {
	case reflect.Slice, reflect.Pointer, reflect.Map:
		fields(ty.Elem(), out)
	case reflect.Struct:
		for i := range ty.NumField() {
			if name, _, _ := strings.Cut(ty.Field(i).Tag.Get("json"), ","); name != "" {
				out[name] = true
				fields(ty.Field(i).Type, out)
			}
		}
	}
}

func TestFieldsAreDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	fields(reflect.TypeFor[Study](), names)
	if len(names) < 60 {
		t.Fatalf("only %d fields", len(names))
	}
	for n := range names {
		if !strings.Contains(string(page), "`"+n+"`") {
			t.Errorf("docs/compare.md does not describe the field %s", n)
		}
	}
}
