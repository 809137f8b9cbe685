// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build makes the objects that suites write again and again. It makes values, and
// asks no cluster: what is done with them is in test/support/expect. Add to a builder rather than
// writing an object out.
package build

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scheme knows the kinds of all adders, which are AddToScheme of their packages. One that
// fails is a mistake in the suite.
func Scheme(adders ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range adders {
		if err := add(scheme); err != nil {
			panic(fmt.Sprintf("making a scheme: %v", err))
		}
	}
	return scheme
}

// CacheOf is a cache that has what the reader reads, and can do nothing but get it: for units
// whose hub is in memory.
func CacheOf(reader client.Reader) cache.Cache { return readCache{reader: reader} }

type readCache struct {
	cache.Cache
	reader client.Reader
}

// Get implements client.Reader.
func (c readCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, object, options...)
}

// Unlimited is a configuration that makes as many requests as it likes.
func Unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// Named is the metadata of an object in no namespace, In of one that is in one.
func Named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// In is the metadata of an object in a namespace.
func In(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// Namespace has labels as keys and values by turns.
func Namespace(name string, labels ...string) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: Named(name)}
	namespace.Labels = pairs(labels)
	return namespace
}

// ConfigMap has data as keys and values by turns.
func ConfigMap(namespace, name string, data ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: In(namespace, name), Data: pairs(data)}
}

// Grant lets a user do something in a namespace: a Role and a RoleBinding of the name.
func Grant(namespace, name, user string, rules []rbacv1.PolicyRule) (*rbacv1.Role, *rbacv1.RoleBinding) {
	return &rbacv1.Role{ObjectMeta: In(namespace, name), Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: In(namespace, name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}
}

// ConfigMapText is the manifest of a ConfigMap, as JSON, labelled app=spec.
func ConfigMapText(namespace, name string, data ...string) string {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]string{"app": "spec"}},
		"data":     pairs(data),
	})
	if err != nil {
		panic(fmt.Sprintf("writing a ConfigMap: %v", err)) // It is made of strings.
	}
	return string(text)
}

// DeploymentText is the manifest of a Deployment of two pods with the label app=selector.
func DeploymentText(namespace, name, selector string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: %q, name: %q}, spec: {replicas: 2,
		selector: {matchLabels: {app: %q}}, template: {metadata: {labels: {app: %q}},
		spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`, namespace, name, selector, selector)
}

func pairs(list []string) map[string]string {
	values := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		values[list[i]] = list[i+1]
	}
	return values
}
