// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	agentoptions "fleetgate.io/fleetgate/cmd/agent/app/options"
	gatewayoptions "fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// decoders read the configuration file of each program, and reject unknown fields.
var decoders = map[string]func(text []byte) error{
	"agent": func(text []byte) error { return configfile.Decode(text, agentoptions.Kind, agentoptions.Defaults()) },
	"gateway": func(text []byte) error {
		return configfile.Decode(text, gatewayoptions.Kind, gatewayoptions.Defaults())
	},
}

// expectKnownFields rejects a rendered chart whose configuration file its program would reject.
func expectKnownFields(t *testing.T, name, rendered string) {
	t.Helper()
	for _, document := range strings.Split(rendered, "\n---\n") {
		var mounted corev1.ConfigMap
		if !strings.Contains(document, "kind: ConfigMap\n") {
			continue
		}
		if err := yaml.Unmarshal([]byte(document), &mounted); err != nil {
			t.Fatal(err)
		}
		if text, found := mounted.Data[name+".yaml"]; found {
			if err := decoders[name]([]byte(text)); err != nil {
				t.Errorf("the configuration of %s: %v\n%s", name, err, text)
			}
			return
		}
	}
	t.Errorf("the chart %s renders no configuration", name)
}
