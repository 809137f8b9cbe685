// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	addonv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1beta1"
)

func managedToBeta(object map[string]any) fields {
	spec, status, saved := child(object, "spec"), child(object, "status"), fields{}
	saved.installNamespace = text(spec, "installNamespace")
	delete(spec, "installNamespace")
	saved.takeAddOnConfiguration(status)
	driver, hasClient := text(status, "kubeClientDriver"), false
	delete(status, "kubeClientDriver")
	each(status, "registrations", func(i int, registration map[string]any) {
		client := text(registration, "signerName") == certificatesv1.KubeAPIServerClientSignerName
		hasClient = hasClient || client
		if client {
			clientToBeta(i, registration, driver, &saved)
		} else {
			signerToBeta(registration)
		}
	})
	if !hasClient {
		saved.KubeClientDriver = driver
	}
	each(status, "configReferences", func(i int, reference map[string]any) { saved.takeReferent(i, reference) })
	return saved
}

func clientToBeta(i int, registration map[string]any, driver string, saved *fields) {
	client := map[string]any{}
	if subject, ok := registration["subject"].(map[string]any); ok {
		saved.takeUnits(i, subject)
		client["subject"] = subject
	}
	set(client, "driver", driver)
	delete(registration, "signerName")
	delete(registration, "subject")
	registration["type"], registration["kubeClient"] = string(addonv1beta1.KubeClient), client
}

func signerToBeta(registration map[string]any) {
	signer := map[string]any{"signerName": text(registration, "signerName")}
	if subject, ok := registration["subject"].(map[string]any); ok {
		move(subject, "organizationUnit", "organizationUnits")
		signer["subject"] = subject
	}
	delete(registration, "signerName")
	delete(registration, "subject")
	registration["type"], registration["customSigner"] = string(addonv1beta1.CustomSigner), signer
}

func managedToStored(object map[string]any, saved fields) error {
	spec := in(object, "spec")
	if namespace := saved.installNamespace; namespace != "" {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return fmt.Errorf("annotation %s must be the name of a namespace", addonv1beta1.InstallNamespaceAnnotation)
		}
		spec["installNamespace"] = namespace
	}
	status := child(object, "status")
	driver := ""
	if err := objects(status, "registrations", func(i int, registration map[string]any) error {
		own, err := registrationToStored(registration, saved.Units[i])
		if err == nil && own != "" && driver != "" && own != driver {
			err = fmt.Errorf("kubeClient.driver must be the same in all registrations")
		}
		if err != nil {
			return fmt.Errorf("status.registrations[%d]: %w", i, err)
		}
		driver = max(driver, own)
		return nil
	}); err != nil {
		return err
	}
	if err := objects(status, "configReferences", saved.giveReferent); err != nil {
		return err
	}
	if driver == "" {
		driver = saved.KubeClientDriver
	}
	if driver != "" {
		in(object, "status")["kubeClientDriver"] = driver
	}
	if saved.AddOnConfiguration != (addonv1alpha1.ConfigCoordinates{}) {
		saved.giveAddOnConfiguration(in(object, "status"))
	}
	return nil
}

// registrationToStored returns the driver of the registration. The units are those of an identity for
// the hub's API server, which v1beta1 cannot express.
func registrationToStored(registration map[string]any, units []string) (driver string, err error) {
	client, isClient := registration["kubeClient"].(map[string]any)
	signer, isSigner := registration["customSigner"].(map[string]any)
	kind := addonv1beta1.RegistrationType(text(registration, "type"))
	for _, field := range []string{"type", "kubeClient", "customSigner"} {
		delete(registration, field)
	}
	var subject map[string]any
	switch {
	case kind == addonv1beta1.KubeClient && !isSigner:
		registration["signerName"] = certificatesv1.KubeAPIServerClientSignerName
		subject, driver = child(client, "subject"), text(client, "driver")
		if len(units) > 0 {
			if subject == nil {
				subject = map[string]any{}
			}
			subject["organizationUnit"] = list(units)
		}
	case kind == addonv1beta1.CustomSigner && isSigner && !isClient:
		if text(signer, "signerName") == certificatesv1.KubeAPIServerClientSignerName {
			return "", fmt.Errorf("customSigner.signerName must not be %s: use type %s", certificatesv1.KubeAPIServerClientSignerName, addonv1beta1.KubeClient)
		}
		registration["signerName"], subject = text(signer, "signerName"), child(signer, "subject")
		move(subject, "organizationUnits", "organizationUnit")
	default:
		return "", fmt.Errorf("exactly the field that type names must be set, kubeClient or customSigner")
	}
	if subject != nil {
		registration["subject"] = subject
	}
	return driver, nil
}

func list(texts []string) []any {
	items := make([]any, len(texts))
	for i := range texts {
		items[i] = texts[i]
	}
	return items
}
