// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	appsGroup   = "apps"
	deployments = "deployments"
	daemonSets  = "daemonsets"

	// Where credentials and certificates are mounted.
	managedDir       = "/managed/"
	hubKubeconfigDir = managedDir + "hub-kubeconfig"
	proxyDir         = managedDir + "proxy-ca"
	proxyFile        = "ca-bundle.crt"
)

// workloadOf is the resource of a workload that is decorated and probed; empty for other objects.
func workloadOf(object *unstructured.Unstructured) string {
	if object.GroupVersionKind().Group != appsGroup {
		return ""
	}
	switch object.GetKind() {
	case "Deployment":
		return deployments
	case "DaemonSet":
		return daemonSets
	}
	return ""
}

// decoration is what objects get that templates do not write.
type decoration struct {
	in        Inputs
	values    map[string]string
	namespace string
	mirrors   []addonv1alpha1.ImageMirror
	// containers counts those of all workloads.
	containers *int
}

// encode decorates an object and returns its JSON.
func (d *decoration) encode(object *unstructured.Unstructured, budget *int) ([]byte, error) {
	if err := d.decorate(object); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	if *budget -= len(raw); *budget < 0 {
		return nil, errTooLarge()
	}
	return raw, nil
}

func (d *decoration) decorate(object *unstructured.Unstructured) error {
	if resource := workloadOf(object); resource != "" {
		if err := d.workload(resource, object); err != nil {
			return err
		}
	}
	if d.in.Config == nil || d.in.Config.AgentInstallNamespace == "" {
		return nil
	}
	if object.GetNamespace() != "" {
		object.SetNamespace(d.namespace)
	}
	switch object.GetKind() {
	case "Namespace":
		object.SetName(d.namespace)
	case "RoleBinding", "ClusterRoleBinding":
		subjects, _ := object.Object["subjects"].([]any)
		for _, subject := range subjects {
			if fields, ok := subject.(map[string]any); ok && fields["kind"] == "ServiceAccount" {
				fields["namespace"] = d.namespace
			}
		}
	}
	return nil
}

// pod is the template of a workload's Pods.
type pod struct {
	spec map[string]any
	// containers are without those that run first.
	containers []map[string]any
}

func podOf(object *unstructured.Unstructured) (*pod, error) {
	p := &pod{spec: object.Object}
	for _, field := range []string{"spec", "template", "spec"} {
		next, ok := p.spec[field].(map[string]any)
		if !ok {
			return nil, errors.New("spec.template.spec is no object")
		}
		p.spec = next
	}
	var err error
	p.containers, err = objectsIn(p.spec, "containers")
	return p, err
}

// objectsIn are the objects in a list.
func objectsIn(fields map[string]any, field string) ([]map[string]any, error) {
	list, ok := fields[field].([]any)
	if !ok && fields[field] != nil {
		return nil, fmt.Errorf("%s is no list", field)
	}
	objects := make([]map[string]any, 0, len(list))
	for _, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s has an item that is no object", field)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// set adds an object to a list, and replaces those with the same value of the key.
func set(fields map[string]any, field, key string, object map[string]any) error {
	existing, err := objectsIn(fields, field)
	if err != nil {
		return err
	}
	list := make([]any, 0, len(existing)+1)
	for _, has := range existing {
		if has[key] != object[key] {
			list = append(list, has)
		}
	}
	fields[field] = append(list, object)
	return nil
}

// environment sets variables of all containers.
func (p *pod) environment(variables ...[2]string) error {
	for _, container := range p.containers {
		for _, variable := range variables {
			if err := set(container, "env", "name", map[string]any{"name": variable[0], "value": variable[1]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// mount mounts a volume into all containers.
func (p *pod) mount(name, path string, source map[string]any) error {
	source["name"] = name
	for _, container := range p.containers {
		if err := set(container, "volumeMounts", "mountPath", map[string]any{"name": name, "mountPath": path}); err != nil {
			return err
		}
	}
	return set(p.spec, "volumes", "name", source)
}

func (d *decoration) workload(resource string, object *unstructured.Unstructured) error {
	p, err := podOf(object)
	if err != nil {
		return err
	}
	if *d.containers += len(p.containers); *d.containers > mostContainers {
		return fmt.Errorf("its workloads have more than %d containers", mostContainers)
	}
	for _, decorate := range []func(*pod) error{d.variables, d.credentials, d.nodes, d.images, d.proxy} {
		if err := decorate(p); err != nil {
			return err
		}
	}
	return d.resources(p, resource, object.GetName())
}

// variables sets the built-in variables that Open Cluster Management sets, in the same order.
func (d *decoration) variables(p *pod) error {
	var builtIn [][2]string
	if d.in.Template.Spec.Registration != nil {
		builtIn = append(builtIn, [2]string{hubKubeconfig, d.values[hubKubeconfig]})
	}
	builtIn = append(builtIn, [2]string{clusterName, d.values[clusterName]})
	if d.in.Config != nil && d.in.Config.AgentInstallNamespace != "" {
		builtIn = append(builtIn, [2]string{installNamespace, d.values[installNamespace]})
	}
	return p.environment(builtIn...)
}

// credentials mounts the Secrets that the cluster's agent writes for the registrations.
func (d *decoration) credentials(p *pod) error {
	secret := func(name string) map[string]any { return map[string]any{"secret": map[string]any{"secretName": name}} }
	for _, registration := range d.in.Template.Spec.Registration {
		var err error
		switch {
		case registration.Type == addonv1alpha1.RegistrationKubeClient:
			err = p.mount("hub-kubeconfig", hubKubeconfigDir, secret(d.in.AddOn+"-hub-kubeconfig"))
		case registration.Type == addonv1alpha1.RegistrationCustomSigner && registration.CustomSigner != nil:
			signer := strings.ReplaceAll(registration.CustomSigner.SignerName, "/", "-")
			err = p.mount("cert-"+strings.ReplaceAll(signer, ".", "-"), managedDir+signer, secret(d.in.AddOn+"-"+signer+"-client-cert"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoration) nodes(p *pod) error {
	if d.in.Config == nil || d.in.Config.NodePlacement == nil {
		return nil
	}
	placement, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.in.Config.NodePlacement)
	if err != nil {
		return err
	}
	for field, value := range placement {
		p.spec[field] = value
	}
	return nil
}

// images replaces registries, also of containers that run first.
func (d *decoration) images(p *pod) error {
	first, err := objectsIn(p.spec, "initContainers")
	if err != nil {
		return err
	}
	for _, container := range slices.Concat(p.containers, first) {
		if image, ok := container["image"].(string); ok {
			container["image"] = mirrored(d.mirrors, image)
		}
	}
	return nil
}

// mirrored is where an image is: the last mirror whose source it begins with counts.
func mirrored(mirrors []addonv1alpha1.ImageMirror, image string) string {
	found := image
	for _, m := range mirrors {
		source, mirror := strings.TrimSuffix(m.Source, "/"), strings.TrimSuffix(m.Mirror, "/")
		if source == "" {
			found = strings.TrimPrefix(mirror+"/"+image[strings.LastIndex(image, "/")+1:], "/")
			continue
		}
		if rest, is := strings.CutPrefix(image, source); is {
			found = mirror + rest
		}
	}
	return found
}

// mirrorsOf are those of the configuration, or else of the cluster.
func mirrorsOf(in Inputs) ([]addonv1alpha1.ImageMirror, error) {
	if in.Config != nil && in.Config.Registries != nil {
		return in.Config.Registries, nil
	}
	if in.Mirrors == "" {
		return nil, nil
	}
	var cluster struct {
		Registries []addonv1alpha1.ImageMirror `json:"registries"`
	}
	if err := untrusted.UnmarshalJSON([]byte(in.Mirrors), untrusted.Object, &cluster); err != nil {
		return nil, refuse("annotation %s of ManagedCluster %q is invalid: %w", addonv1alpha1.ImageRegistriesAnnotation, in.Cluster, err)
	}
	return cluster.Registries, nil
}

func (d *decoration) proxy(p *pod) error {
	if d.in.Config == nil {
		return nil
	}
	var variables [][2]string
	proxy := d.in.Config.ProxyConfig
	for _, variable := range [][2]string{{"HTTP_PROXY", proxy.HTTPProxy}, {"HTTPS_PROXY", proxy.HTTPSProxy}, {"NO_PROXY", proxy.NoProxy}} {
		if variable[1] != "" {
			variables = append(variables, variable, [2]string{strings.ToLower(variable[0]), variable[1]})
		}
	}
	if len(variables) == 0 {
		return nil
	}
	if len(proxy.CABundle) == 0 {
		return p.environment(variables...)
	}
	if err := p.environment(append(variables, [2]string{"CA_BUNDLE_FILE_PATH", proxyDir + "/" + proxyFile})...); err != nil {
		return err
	}
	return p.mount("proxy-ca-bundle", proxyDir, map[string]any{"configMap": map[string]any{"name": d.proxyConfigMap()}})
}

func (d *decoration) proxyConfigMap() string { return d.in.AddOn + "-proxy-ca" }

// authorities is the ConfigMap with the certificates that verify the proxy, if any.
func (d *decoration) authorities() []*unstructured.Unstructured {
	if d.in.Config == nil || len(d.in.Config.ProxyConfig.CABundle) == 0 {
		return nil
	}
	return []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": d.proxyConfigMap(), "namespace": d.namespace},
		"data":     map[string]any{proxyFile: string(d.in.Config.ProxyConfig.CABundle)},
	}}}
}

// resources sets requests and limits of containers. The last requirement that matches one counts.
func (d *decoration) resources(p *pod, resource, name string) error {
	if d.in.Config == nil {
		return nil
	}
	for _, container := range p.containers {
		is, _ := container["name"].(string)
		id := []string{resource, name, is}
		for _, requirement := range slices.Backward(d.in.Config.ResourceRequirements) {
			if !matches(requirement.ContainerID, id) {
				continue
			}
			desired, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&requirement.Resources)
			if err != nil {
				return err
			}
			container["resources"] = desired
			break
		}
	}
	return nil
}

// matches compares resource, workload and container; * is any.
func matches(pattern string, id []string) bool {
	parts := strings.SplitN(pattern, ":", len(id))
	return len(parts) == len(id) && !slices.ContainsFunc([]int{0, 1, 2}, func(i int) bool { return parts[i] != "*" && parts[i] != id[i] })
}
