// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentoptions "fleetgate.io/fleetgate/cmd/agent/app/options"
	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// configPage is the page of the configuration files.
const configPage = "config.fleetgate.io"

// configurationPage lists every field of every configuration file, with its default and its flag.
func configurationPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nMade from the types: go test ./test/documents -update.\n", configPage)
	for _, file := range []struct {
		kind, program string
		defaults      any
		flags         interface{ AddFlags(*pflag.FlagSet) }
	}{
		{configv1alpha1.AgentKind, "agent", agentoptions.Defaults(), agentoptions.New()},
		{configv1alpha1.GatewayKind, "gateway", options.Defaults(), options.New()},
	} {
		page := &fieldTable{comments: commentsOfFields(t), flags: map[string]string{}}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		file.flags.AddFlags(flags)
		flags.VisitAll(func(f *pflag.Flag) { page.flags[configfile.FieldOf(f)] = f.Name })
		fmt.Fprintf(&b, "\n## %s\n\nThe file of `%s --config`, with `apiVersion: %s`. A flag overrides its field.\n\n| field | default | flag | meaning |\n|---|---|---|---|\n",
			file.kind, file.program, configv1alpha1.GroupVersion)
		page.write("", reflect.ValueOf(file.defaults).Elem())
		b.WriteString(page.rows.String())
	}
	return b.String()
}

// fieldTable collects one row for each field.
type fieldTable struct {
	// comments are by type and field, flags by path.
	comments, flags map[string]string
	rows            strings.Builder
}

func (p *fieldTable) write(prefix string, of reflect.Value) {
	for i := range of.NumField() {
		field := of.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			continue // TypeMeta
		}
		path, standard := prefix+name, ""
		section := field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[metav1.Duration]()
		if !section {
			standard = standardValue(of.Field(i))
		}
		flag := p.flags[path]
		if flag != "" {
			flag = "`--" + flag + "`"
		}
		fmt.Fprintf(&p.rows, "| `%s` | %s | %s | %s |\n", path, standard, flag, oneLine(p.comments[of.Type().Name()+"."+field.Name]))
		if section {
			p.write(path+".", of.Field(i))
		}
	}
}

func standardValue(of reflect.Value) string {
	text := fmt.Sprint(of.Interface())
	switch given := of.Interface().(type) {
	case metav1.Duration:
		text = given.Duration.String()
	case []string:
		text = strings.Join(given, ", ")
	case map[string]string:
		text = ""
	}
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// commentsOfFields are the comments of the types, by type and field.
func commentsOfFields(t *testing.T) map[string]string {
	t.Helper()
	folder, all := root+"/pkg/apis/config/v1alpha1", map[string]string{}
	for _, name := range []string{"doc.go", "gateway.go", "agent.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), folder+"/"+name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			declared, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := declared.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range fields.Fields.List {
				if len(field.Names) == 1 {
					all[declared.Name.Name+"."+field.Names[0].Name] = field.Doc.Text()
				}
			}
			return false
		})
	}
	return all
}
