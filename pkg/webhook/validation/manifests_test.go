// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

func TestManifestsOfAWork(t *testing.T) {
	const good = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"b"}}`
	named := func(kind, namespace, name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"namespace":%q,"name":%q}}`, kind, namespace, name)
	}
	for name, tc := range map[string]struct {
		manifests []string
		want      string
	}{
		"one":                        {manifests: []string{good}},
		"some that differ":           {manifests: []string{good, named("Secret", "a", "b"), named("ConfigMap", "b", "b"), named("ConfigMap", "a", "a")}},
		"as many as may be":          {manifests: []string{good + strings.Repeat(" ", 400-len(good))}},
		"too many":                   {[]string{good + strings.Repeat(" ", 400-len(good)), " "}, "the size of manifests is 401 bytes which exceeds the 400 limit"},
		"one without a name":         {[]string{good, named("ConfigMap", "a", "")}, "name must be set in manifest"},
		"one that asks for a name":   {[]string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","generateName":"c"}}`}, "generateName must not be set in manifest"},
		"one twice":                  {[]string{good, good}, "duplicate manifest for resource a/b with resource type v1.ConfigMap"},
		"one twice, in no namespace": {[]string{named("Namespace", "", "b"), named("Namespace", "", "b")}, "duplicate manifest for resource /b with resource type v1.Namespace"},
		"no object":                  {[]string{`[]`}, "cannot unmarshal"},
		"none at all":                {[]string{``}, "unexpected end of JSON input"},
	} {
		var manifests []workv1.Manifest
		for _, raw := range tc.manifests {
			manifests = append(manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}})
		}
		err := ValidateManifests(manifests, 400)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
