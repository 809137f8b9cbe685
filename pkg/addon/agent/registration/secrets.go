// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// RecordSecret in the agent's namespace lists the Secrets of add-ons. The agent has no right to search
// other namespaces for them.
const RecordSecret = "agent-add-ons"

// Secrets are the Secrets of add-ons on the member, which one agent wrote.
type Secrets struct {
	// Member reads and writes the member without a cache.
	Member client.Client
	// Namespace is that of the agent. Several agents of a member have different ones.
	Namespace string
	// Reserved are namespaces in which no Secret is written, besides Namespace.
	Reserved []string
}

// read returns a Secret, without data if it does not exist, or a refusal if somebody else wrote it.
func (s *Secrets) read(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	if key.Namespace == s.Namespace || slices.Contains(s.Reserved, key.Namespace) || strings.HasPrefix(key.Namespace, "kube-") {
		return nil, refusal.New(addonv1alpha1.ReasonCertificateUpdateFailed, "Namespace %q of the cluster is reserved: use another one for the add-on's agent", key.Namespace)
	}
	secret := &corev1.Secret{}
	exists, err := reconcileutil.GetIfExists(ctx, s.Member, key, secret, "reading Secret %s on the member", key)
	if err != nil {
		return nil, err
	}
	if !exists {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, nil
	}
	if secret.Labels[addonv1alpha1.AgentLabel] != s.Namespace {
		return nil, refusal.New(addonv1alpha1.ReasonCertificateUpdateFailed, "Secret %s exists on the cluster and is not this agent's: delete it there", key)
	}
	return secret, nil
}

// write gives a Secret from read the data, and nothing else. It is recorded first.
func (s *Secrets) write(ctx context.Context, addOn string, secret *corev1.Secret, data map[string][]byte) error {
	key := client.ObjectKeyFromObject(secret)
	if secret.UID != "" {
		return reconcileutil.Patch(ctx, s.Member, secret, func() { secret.Data = data }, "updating Secret %s on the member", key)
	}
	if err := s.record(ctx, addOn, func(keys []string) []string { return append(keys, key.String()) }); err != nil {
		return err
	}
	secret.Labels = map[string]string{addonv1alpha1.AgentLabel: s.Namespace, addonv1alpha1.AddOnNameLabel: addOn}
	secret.Data = data
	err := s.Member.Create(ctx, secret)
	if apierrors.IsNotFound(err) && key.Namespace == addonv1alpha1.DefaultInstallNamespace {
		// Managers rely on this namespace, and create any other one themselves.
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}}
		if err := s.Member.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating Namespace %s on the member: %w", key.Namespace, err)
		}
		err = s.Member.Create(ctx, secret)
	}
	if apierrors.IsNotFound(err) {
		return refusal.New(addonv1alpha1.ReasonCertificateUpdateFailed, "Namespace %q does not exist on the cluster yet", key.Namespace)
	}
	if err != nil {
		return fmt.Errorf("creating Secret %s on the member: %w", key, err)
	}
	return nil
}

// keep deletes the recorded Secrets of an add-on, except those.
func (s *Secrets) keep(ctx context.Context, addOn string, except ...types.NamespacedName) error {
	recorded, err := s.recorded(ctx)
	if err != nil {
		return err
	}
	var failed []error
	var gone []string
	for _, text := range recorded[addOn] {
		namespace, name, _ := strings.Cut(text, "/")
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if slices.Contains(except, key) {
			continue
		}
		if err := s.delete(ctx, key); err != nil {
			failed = append(failed, err)
			continue
		}
		gone = append(gone, text)
	}
	if len(gone) > 0 {
		failed = append(failed, s.record(ctx, addOn, func(keys []string) []string {
			return slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(gone, key) })
		}))
	}
	return errors.Join(failed...)
}

// delete deletes a Secret unless somebody else wrote it.
func (s *Secrets) delete(ctx context.Context, key types.NamespacedName) error {
	secret := &corev1.Secret{}
	exists, err := reconcileutil.GetIfExists(ctx, s.Member, key, secret, "reading Secret %s on the member", key)
	if err != nil || !exists || secret.Labels[addonv1alpha1.AgentLabel] != s.Namespace {
		return err
	}
	if err := s.Member.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s on the member: %w", key, err)
	}
	return nil
}

// Forget deletes the Secrets of all add-ons, for a member that has left the hub.
func (s *Secrets) Forget(ctx context.Context) error {
	recorded, err := s.recorded(ctx)
	var failed []error
	for addOn := range recorded {
		failed = append(failed, s.keep(ctx, addOn))
	}
	return errors.Join(append(failed, err)...)
}

// recorded are the recorded Secrets by add-on. An agent without the right to read the record has
// written none.
func (s *Secrets) recorded(ctx context.Context) (map[string][]string, error) {
	record, err := s.readRecord(ctx)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make(map[string][]string, len(record.Data))
	for addOn, keys := range record.Data {
		all[addOn] = strings.Fields(string(keys))
	}
	return all, nil
}

func (s *Secrets) readRecord(ctx context.Context) (*corev1.Secret, error) {
	record := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: RecordSecret}}
	_, err := reconcileutil.GetIfExists(ctx, s.Member, client.ObjectKeyFromObject(record), record, "reading Secret %s/%s on the member", s.Namespace, RecordSecret)
	return record, err
}

// record changes the recorded Secrets of an add-on.
func (s *Secrets) record(ctx context.Context, addOn string, change func([]string) []string) error {
	record, err := s.readRecord(ctx)
	if err != nil {
		return err
	}
	data := maps.Clone(record.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	keys := slices.Compact(slices.Sorted(slices.Values(change(strings.Fields(string(data[addOn]))))))
	if data[addOn] = []byte(strings.Join(keys, "\n")); len(keys) == 0 {
		delete(data, addOn)
	}
	if maps.EqualFunc(data, record.Data, slices.Equal[[]byte]) {
		return nil
	}
	record.Data = data
	write := func() error { return s.Member.Update(ctx, record) }
	if record.UID == "" {
		write = func() error { return s.Member.Create(ctx, record) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("writing Secret %s/%s on the member: %w", s.Namespace, RecordSecret, err)
	}
	return nil
}
