// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

// Built-in variables. Customized ones may replace the first, never the others.
const (
	hubKubeconfig    = "HUB_KUBECONFIG"
	clusterName      = "CLUSTER_NAME"
	installNamespace = "INSTALL_NAMESPACE"

	hubKubeconfigPath = hubKubeconfigDir + "/kubeconfig"
)

// valuesOf are the variables of an add-on.
func valuesOf(in Inputs) map[string]string {
	values := map[string]string{}
	if in.Template.Spec.Registration != nil {
		values[hubKubeconfig] = hubKubeconfigPath
	}
	namespace := addonv1alpha1.DefaultInstallNamespace
	if in.Config != nil {
		for _, variable := range in.Config.CustomizedVariables {
			values[variable.Name] = variable.Value
		}
		if in.Config.AgentInstallNamespace != "" {
			namespace = in.Config.AgentInstallNamespace
		}
	}
	values[clusterName], values[installNamespace] = in.Cluster, namespace
	return values
}

// replacement replaces variables in the texts of a manifest. The budget is how many bytes may be added.
type replacement struct {
	values map[string]string
	budget *int
}

func (r *replacement) in(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return r.text(value)
	case []any:
		for i := range value {
			replaced, err := r.in(value[i])
			if err != nil {
				return nil, err
			}
			value[i] = replaced
		}
		return value, nil
	case map[string]any:
		replaced := make(map[string]any, len(value))
		for key, item := range value {
			name, err := r.text(key)
			if err != nil {
				return nil, err
			}
			if replaced[name], err = r.in(item); err != nil {
				return nil, err
			}
		}
		if len(replaced) != len(value) {
			return nil, errors.New("two keys of an object are the same with the values of their variables")
		}
		return replaced, nil
	}
	return value, nil
}

func (r *replacement) text(text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return "", errors.New("a text has {{ without }}")
		}
		value := r.values[name]
		if *r.budget -= len(value); *r.budget < 0 {
			return "", errTooLarge()
		}
		out.WriteString(value)
		text = after
	}
}

// replicasAsNumber turns the number of replicas, which a variable makes a text, into a number.
func replicasAsNumber(object *unstructured.Unstructured) error {
	if kind := object.GetKind(); kind != "Deployment" && kind != "StatefulSet" || object.GroupVersionKind().Group != appsGroup {
		return nil
	}
	spec, isObject := object.Object["spec"].(map[string]any)
	text, isText := spec["replicas"].(string)
	if !isObject || !isText {
		return nil
	}
	replicas, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return errors.New("spec.replicas is no number")
	}
	spec["replicas"] = replicas
	return nil
}
