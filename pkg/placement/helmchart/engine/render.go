// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
)

// oldestVersion is the oldest supported version of a member. It is assumed if a member has not
// reported its version.
const oldestVersion = "v1.29.0"

// maxMessage limits a quoted message of Helm's.
const maxMessage = 1000

// Render renders a chart. The answer has a Problem if the chart or its values are invalid.
func Render(r *helmchart.Release) *helmchart.Rendered {
	rendered := &helmchart.Rendered{}
	c, err := loader.LoadArchive(bytes.NewReader(r.Package))
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return failed(rendered, r, fmt.Errorf("%s: %w", helmchart.KeyPackage, err))
	}
	rendered.Chart = c.Name() + " " + c.Metadata.Version
	if rendered.Objects, err = render(c, r); err != nil {
		return failed(rendered, r, err)
	}
	return rendered
}

// location is a place in Helm's error messages: a file with the line.
var location = regexp.MustCompile(`[\w./-]+\.[A-Za-z]+:\d+(:\d+)?`)

// failed reports the error. For a confidential chart it reports only the place, because messages of
// templates may quote values.
func failed(rendered *helmchart.Rendered, r *helmchart.Release, err error) *helmchart.Rendered {
	problem := &helmchart.Problem{}
	if !errors.As(err, &problem) {
		problem.What = err.Error()
	}
	if r.Confidential {
		if problem.Where == "" {
			problem.Where = location.FindString(problem.What)
		}
		problem.What = "it cannot be rendered; the reason is withheld because its values come from a Secret"
	}
	problem.What = untrusted.Excerpt(problem.What, maxMessage)
	problem.Chart = rendered.Chart
	rendered.Objects, rendered.Problem = nil, problem
	return rendered
}

func render(c *chart.Chart, r *helmchart.Release) ([]helmchart.Object, error) {
	if err := installable(c); err != nil {
		return nil, err
	}
	capabilities, err := capabilitiesOf(r)
	if err != nil {
		return nil, err
	}
	if wanted := c.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("it is for Kubernetes %s, and member %q has %s", wanted, r.Member.Name, capabilities.KubeVersion.String())
	}
	given, err := valuesFor(r, capabilities)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(c, given); err != nil {
		return nil, fmt.Errorf("choosing the charts in it: %w", err)
	}
	values, err := commonutil.ToRenderValuesWithSchemaValidation(c, given, optionsOf(r), capabilities, true)
	if err != nil {
		return nil, err
	}
	if coalesced, ok := values["Values"].(common.Values); ok {
		if err := checkSchema(c, coalesced.AsMap()); err != nil {
			return nil, err
		}
	}
	withoutNotes(c)
	files, err := engine.Engine{CustomTemplateFuncs: functions()}.Render(c, values)
	if err != nil {
		return nil, err
	}
	return objectsOf(c, files)
}

// installable refuses charts that render to nothing, or only partly.
func installable(c *chart.Chart) error {
	if c.Metadata.Type == "library" {
		return errors.New("it is a library for other charts")
	}
	for _, wanted := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return d.Name() == wanted.Name }) {
			return fmt.Errorf("chart %q, on which it depends, is not in it: run helm dependency update before helm package", wanted.Name)
		}
	}
	return nil
}

// withoutNotes removes templates that are meant for a terminal.
func withoutNotes(c *chart.Chart) {
	c.Templates = slices.DeleteFunc(c.Templates, func(f *common.File) bool { return path.Base(f.Name) == "NOTES.txt" })
	for _, inner := range c.Dependencies() {
		withoutNotes(inner)
	}
}

// capabilitiesOf are the member's version and the API versions that `helm template` assumes.
func capabilitiesOf(r *helmchart.Release) (*common.Capabilities, error) {
	capabilities := common.DefaultCapabilities.Copy()
	version, err := common.ParseKubeVersion(cmp.Or(r.KubernetesVersion, oldestVersion))
	if err != nil {
		return nil, fmt.Errorf("reading version %q of member %q: %w", r.KubernetesVersion, r.Member.Name, err)
	}
	capabilities.KubeVersion = *version
	return capabilities, nil
}

// optionsOf never declares an upgrade, because the result must not depend on what the member had.
func optionsOf(r *helmchart.Release) common.ReleaseOptions {
	return common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}
}

// valuesFor are the user's values, the result of their template, and the member.
func valuesFor(r *helmchart.Release, capabilities *common.Capabilities) (map[string]any, error) {
	values, err := common.ReadValues(r.Values)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", helmchart.KeyValues, err)
	}
	if err := addMember(values, r.Member); err != nil || r.ValuesTemplate == "" {
		return values, err
	}
	options := optionsOf(r)
	only := &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "values", Version: "0.0.0"},
		Templates: []*common.File{{Name: helmchart.KeyValuesTemplate, Data: []byte(r.ValuesTemplate)}},
	}
	files, err := engine.Engine{CustomTemplateFuncs: functions()}.Render(only, common.Values{
		"Values": common.Values(values), "Capabilities": capabilities,
		"Release": map[string]any{"Name": options.Name, "Namespace": options.Namespace},
	})
	if err != nil {
		return nil, err
	}
	made, err := common.ReadValues([]byte(files["values/"+helmchart.KeyValuesTemplate]))
	if err != nil {
		return nil, fmt.Errorf("%s makes no YAML: %w", helmchart.KeyValuesTemplate, err)
	}
	return commonutil.CoalesceTables(made, values), nil
}

// addMember adds the member to global values, which subcharts see too.
func addMember(values map[string]any, m helmchart.Member) error {
	at := values
	for _, key := range []string{"global", "fleetgate"} {
		inner, ok := at[key].(map[string]any)
		if !ok && at[key] != nil {
			return fmt.Errorf("%s: %s is not a map", helmchart.KeyValues, key)
		}
		if !ok {
			inner = map[string]any{}
			at[key] = inner
		}
		at = inner
	}
	at["member"] = map[string]any{
		"name": m.Name, "labels": anyValues(m.Labels), "annotations": anyValues(m.Annotations), "properties": anyValues(m.Properties),
	}
	return nil
}

func anyValues(texts map[string]string) map[string]any {
	values := make(map[string]any, len(texts))
	for key, text := range texts {
		values[key] = text
	}
	return values
}

// objectsOf are the objects in a chart's folder crds, and in the rendered files, sorted by file
// name.
func objectsOf(c *chart.Chart, files map[string]string) ([]helmchart.Object, error) {
	var all []helmchart.Object
	for _, crd := range c.CRDObjects() {
		found, err := objectsIn(crd.Filename, string(crd.File.Data))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		found, err := objectsIn(name, files[name])
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// objectsIn reads a file of YAML documents, and leaves out hooks that are not applied.
func objectsIn(name, text string) ([]helmchart.Object, error) {
	var all []helmchart.Object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for i := 1; ; i++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		where := fmt.Sprintf("%s, document %d", name, i)
		if err != nil {
			return nil, &helmchart.Problem{Where: where, What: err.Error()}
		}
		found, err := readDocument(document)
		if err != nil {
			return nil, &helmchart.Problem{Where: where, What: err.Error()}
		}
		for _, object := range found {
			all = append(all, helmchart.Object{Template: name, JSON: object})
		}
	}
}
